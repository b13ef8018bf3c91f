"""The people file over many runs: what somebody wrote stays, what the program wrote follows it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.errors import SettingError
from faceplate.jobs.timeline.people_file import People, Suggestion, identities, read_people, update_people
from faceplate.jobs.timeline.recognised import Sighting, name_people

NAMES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), min_size=1, max_size=12)


def update(folder: Path, people: dict[str, str], shots: dict[str, dict[int, str]]) -> People:
    remarks = {shot: {track: "frames 1-9, 100 px wide" for track in tracks} for shot, tracks in shots.items()}
    return update_people(
        folder / "cut.people.toml",
        Suggestion(people, shots, remarks),
        folder / "memory.json",
        timeline="cut.otio",
        page="cut.contact.html",
    )


def text(folder: Path) -> str:
    return (folder / "cut.people.toml").read_text("utf-8")


def write(folder: Path, before: str, after: str) -> None:
    whole = text(folder)
    assert before in whole
    (folder / "cut.people.toml").write_text(whole.replace(before, after), "utf-8")


def test_new_shots_are_added_and_nothing_else_changes(tmp_path: Path) -> None:
    update(tmp_path, {"jane": "jane.fpid"}, {"A001": {1: "jane", 2: "?"}})
    write(tmp_path, '2 = "?"', '2 = "tom"   # the tall one, see call sheet')
    write(tmp_path, "[people]\n", '[people]\n# stand-ins\ntom = "ids/tom.fpid"\n')
    before = text(tmp_path)
    found = update(tmp_path, {"jane": "jane.fpid"}, {"A001": {1: "jane", 2: "?", 3: "?"}, "B 002": {1: "jane"}})
    after = text(tmp_path)
    assert found.shots == {"A001": {1: "jane", 2: "tom", 3: "?"}, "B 002": {1: "jane"}}
    assert found.people == {"jane": "jane.fpid", "tom": "ids/tom.fpid"}
    kept = iter(after.split("\n"))
    assert all(line in kept for line in before.rstrip("\n").split("\n"))  # the old lines, in their order
    assert update(tmp_path, {"jane": "jane.fpid"}, {"A001": {1: "jane", 2: "?", 3: "?"}}) == found
    assert text(tmp_path) == after


def test_what_the_program_wrote_follows_it_and_what_was_deleted_stays_away(tmp_path: Path) -> None:
    update(tmp_path, {}, {"A001": {1: "?", 2: "?", 3: "?"}})
    write(tmp_path, '2 = "?"  # frames 1-9, 100 px wide\n', "")
    write(tmp_path, '3 = "?"', '3 = ""')
    found = update(tmp_path, {"p": ""}, {"A001": {1: "p", 2: "p", 3: "p"}})
    assert found.shots == {"A001": {1: "p", 3: ""}}
    assert '1 = "p"  # frames 1-9' in text(tmp_path)


@settings(deadline=None, max_examples=40)
@given(
    shots=st.dictionaries(NAMES, st.dictionaries(st.integers(1, 99), NAMES, min_size=1, max_size=4), max_size=4),
    people=st.dictionaries(NAMES, NAMES, max_size=4),
)
def test_any_name_comes_back(
    tmp_path_factory: pytest.TempPathFactory, shots: dict[str, dict[int, str]], people: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("people")
    first = dict(list(shots.items())[:1])
    update(folder, {}, first)
    found = update(folder, people, shots)
    assert found == People(people, shots)
    assert read_people(folder / "cut.people.toml") == found
    assert tomllib.loads(text(folder))["people"] == people


def test_who_becomes_whom(tmp_path: Path) -> None:
    people = People(
        {"anna": "jane.fpid", "stays": "", "far": "/ids/x.fpid"},
        {"A": {1: "anna", 2: "stays", 3: "?", 4: ""}, "B": {1: "far"}, "other cut": {1: "nobody"}},
    )
    file = tmp_path / "cut.people.toml"
    assert identities(people, file, ["A", "B"]) == {"A": {1: tmp_path / "jane.fpid"}, "B": {1: Path("/ids/x.fpid")}}
    with pytest.raises(SettingError) as error:
        identities(People({"anna": "x"}, {"A": {1: "ana"}}), file, ["A"])
    assert error.value.hint == "did you mean anna?"
    with pytest.raises(SettingError) as error:
        identities(People({}, {"A": {1: "Zoë B"}}), file, ["A"])
    assert error.value.hint == 'add a line: "Zoë B" = "FILE.fpid"'


@pytest.mark.parametrize(
    "spoiled",
    [
        "[people",
        "[other]\n",
        "[people]\na = 1\n",
        "[shots]\na = 1\n",
        '[shots.a]\nx = "y"\n',
        "[shots.a]\n1 = 2\n",
        "shots = 1\n",
    ],
)
def test_a_file_of_another_form_is_refused_and_kept(tmp_path: Path, spoiled: str) -> None:
    (tmp_path / "cut.people.toml").write_text(spoiled, "utf-8")
    with pytest.raises(SettingError):
        update(tmp_path, {}, {"A001": {1: "?"}})
    assert text(tmp_path) == spoiled


def vector(*values: float) -> object:
    found = np.zeros(8, np.float32)
    found[: len(values)] = values
    return found / np.linalg.norm(found)


def seen(
    shot: str, track: int, towards: tuple[float, ...], weight: float = 1, frames: tuple[int, int] = (0, 9)
) -> Sighting:
    return Sighting(shot, track, vector(*towards), weight, (frames,))  # type: ignore[arg-type]


def test_the_same_people_over_all_shots() -> None:
    sightings = [
        seen("A", 1, (1, 0.1, 0.1), 5),
        seen("A", 2, (0.1, 1), 4),
        seen("B", 1, (0.1, 1, 0.3), 9),
        seen("C", 7, (1, 0.2, 0.2), 6),
        seen("D", 1, (0, 0, 0, 1), 1),
    ]
    assert name_people(sightings, People()) == {
        "A": {1: "person-2", 2: "person-1"},
        "B": {1: "person-1"},
        "C": {7: "person-2"},
        "D": {1: "person-3"},
    }
    # Most of a person's tracks decide the name, on a tie the one that somebody wrote.
    before = People({"anna": "x.fpid"}, {"B": {1: "anna"}, "C": {7: "person-2"}, "A": {2: "person-1"}})
    found = name_people(sightings, before)
    assert (found["B"][1], found["A"][2]) == ("anna", "anna")
    before = People({"anna": "x.fpid"}, {"B": {1: "anna"}, "C": {7: "person-2"}})
    found = name_people(sightings, before)
    assert (found["B"][1], found["A"][2], found["A"][1], found["D"][1]) == ("anna", "anna", "person-2", "person-1")


def test_two_in_one_frame_are_two_people() -> None:
    twins = [seen("A", 1, (1, 0.01)), seen("A", 2, (1, 0.02)), seen("B", 1, (1, 0.01), frames=(0, 4))]
    found = name_people(twins, People())
    assert found["A"][1] != found["A"][2]
    later = [seen("A", 1, (1, 0.01)), seen("A", 2, (1, 0.02), frames=(20, 29))]
    assert name_people(later, People())["A"] == {1: "person-1", 2: "person-1"}
    assert name_people([], People()) == {}
    assert name_people(twins[:1], People()) == {"A": {1: "person-1"}}
