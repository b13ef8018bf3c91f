"""Job files: every job that can be said comes back, and what is wrong is told and harms no other."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import tomlkit
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.batch.queue import JobQueue, read_jobs
from faceplate.batch.state import JobState, States
from faceplate.cli import apply as apply_command
from faceplate.errors import FaceplateError, InputError, SettingError
from faceplate.jobs.words import FIELDS, ApplyWords, read_words

_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\0"), min_size=1, max_size=30)
_WORD = _TEXT.filter(lambda text: not text.startswith("-"))
_MAYBE = st.none() | _WORD
_SEVERAL = st.lists(_WORD, max_size=3).map(tuple)


def _of(name: str) -> st.SearchStrategy[Any]:
    default = FIELDS[name].default
    if isinstance(default, bool):
        return st.booleans()
    return _SEVERAL if default == () else _MAYBE if default is None else _WORD


WORDS = st.builds(
    ApplyWords,
    identity=st.lists(_WORD, min_size=1, max_size=3).map(tuple),
    **{name: _of(name) for name in FIELDS if name != "identity"},
)


def document(words: ApplyWords) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(words).items()
        if value is not None
    }


@settings(max_examples=60, deadline=None)
@given(WORDS)
def test_what_is_said_in_json_and_toml_is_what_is_meant(words: ApplyWords) -> None:
    said = {name.replace("_", "-"): value for name, value in document(words).items()}
    assert read_words(json.loads(json.dumps(said))) == words
    assert read_words(tomlkit.parse(tomlkit.dumps(said)).unwrap()) == words


@settings(max_examples=60, deadline=None)
@given(WORDS)
def test_the_command_line_says_the_same(words: ApplyWords) -> None:
    command = typer.main.get_command(_app())
    context = command.make_context("apply", words.arguments())
    said = {name: value for name, value in context.params.items() if name in FIELDS or name == "set_"}
    said["set"] = said.pop("set_")
    several = {name: tuple(said[name] or ()) for name in FIELDS if name == "identity" or FIELDS[name].default == ()}
    assert ApplyWords(**{**said, **several}) == words


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(apply_command.apply)
    return app


def test_tables_of_settings() -> None:
    words = read_words(
        {"plate": "p", "output": "o", "identity": "i@2", "fps": 24,
         "set": {"strength": 0.5, "keep_eyes": False, "shape": {"1001": 0, "1010": 1}}}
    )  # fmt: skip
    assert words.set == ("strength=0.5", "keep_eyes=off", "shape=1001:0,1010:1")
    assert words.identity == ("i@2",)
    assert words.fps == "24"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"plate": "p", "output": "o"}, "no identity"),
        ({"plate": "p", "output": "o", "identity": []}, "no identity"),
        ({"plate": "p", "output": "o", "identity": "i", "framse": "1"}, "framse"),
        ({"plate": "p", "output": "o", "identity": 3}, "identity"),
        ({"plate": "p", "output": "o", "identity": "i", "commercial": "yes"}, "commercial"),
        ({"plate": "p", "output": ["o"], "identity": "i"}, "output"),
        ({"plate": "p", "output": "o", "identity": "i", "no-movie": True, "no_movie": True}, "twice"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_words(given)
    assert said in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(
    data=st.binary(max_size=200) | st.text(max_size=120).map(str.encode),
    kind=st.sampled_from(["toml", "json", "jsonl"]),
)
def test_rubbish_is_refused_and_nothing_else_happens(
    data: bytes, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / f"rubbish.{kind}"
    file.write_bytes(data)
    assert all(error is not None and error.hint for error in errors_of(file))


def errors_of(file: Path) -> list[FaceplateError | None]:
    try:
        return [job.error for job in read_jobs(file)]
    except InputError as error:
        return [error]


@pytest.mark.parametrize("text", ["[" * 5000, '{"plate": ' + "9" * 5000 + "}", "[[[[", '{"job": 3}', '"x"', "3"])
def test_json_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(text)
    assert all(error is not None for error in errors_of(tmp_path / "q.json"))


JOB = {"plate": "p.####.exr", "output": "o/a.####.exr", "identity": "x.fpid@2"}


def test_a_folder_of_files_in_order_and_what_is_added(tmp_path: Path) -> None:
    def put(name: str, *jobs: dict[str, Any]) -> None:
        (tmp_path / name).write_text("\n".join(map(json.dumps, jobs)))

    put("b.jsonl", {**JOB, "output": "b1.exr"}, {**JOB, "output": "b2.exr", "name": "Shot 2/a"})
    (tmp_path / "notes.txt").write_text("none of ours")
    queue = JobQueue(tmp_path)
    assert [job.name for job in queue.jobs()] == ["b1", "Shot 2/a"]
    put("a.jsonl", JOB)
    (tmp_path / "c.toml").write_text("[[job]\n")
    (tmp_path / "d.jsonl").write_text(json.dumps({**JOB, "output": "d.exr"}) + '\n{"plate": "half')
    jobs = queue.jobs()
    assert [(job.name, job.error is None) for job in jobs] == [
        ("a", True), ("b1", True), ("Shot 2/a", True), ("c.toml", False), ("d", True), ("d.jsonl:2", False),
    ]  # fmt: skip
    first = jobs[0].words
    assert first is not None
    assert (first.plate, first.identity) == (str(tmp_path / "p.####.exr"), (f"{tmp_path}/x.fpid@2",))
    assert len({job.id for job in jobs}) == 6
    assert all("/" not in job.id for job in jobs)


def test_one_output_for_two_jobs_is_refused_for_the_second(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(f"{json.dumps(JOB)}\n{json.dumps({**JOB, 'plate': 'other'})}\n")
    first, second = JobQueue(tmp_path / "q.jsonl").jobs()
    assert first.error is None
    assert "writes there too" in str(second.error)


def test_a_queue_that_moves_keeps_its_states(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "q.json").write_text(json.dumps([JOB]))
    ids = [JobQueue(tmp_path / place / "q.json").jobs()[0] for place in ("here", "there")]
    assert ids[0].id == ids[1].id
    assert ids[0].digest == ids[1].digest


def test_a_file_that_breaks_while_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "q.json"
    file.write_text(json.dumps([JOB]))
    queue = JobQueue(file)
    assert len(queue.jobs()) == 1
    file.write_text(json.dumps([JOB]) + "]")
    assert [job.error is None for job in queue.jobs()] == [True, False]
    with pytest.raises(SettingError):
        JobQueue(file).jobs()


def test_states_survive_and_damage_means_none(tmp_path: Path) -> None:
    states = States(tmp_path / "home")
    state = JobState("a", "d", "failed", 2, 1, {"pid": 3}, counts={"done": 4}, failed={"7": "x"})
    states.write("a", state)
    assert states.read("a") == state
    for text in ("", "{", "[]", '{"format": "faceplate.batch.job", "version": 1}', "[" * 9999):
        states.path("a").write_text(text)
        assert states.read("a") is None
