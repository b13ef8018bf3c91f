"""Installations that are killed, refused, raced or worked on: nothing of the user's is lost, undo is exact."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from faceplate.errors import OutputBusyError, OutputError
from faceplate_client import __version__
from faceplate_install import disk, putting, shared_file
from faceplate_install.putting import install_tree, is_installed, remove_tree
from faceplate_install.record import RECORD, Tree
from tests.integration.conftest import Cli, cli  # noqa: F401 - a fixture

LINES = 'import nuke\n\nnuke.pluginAddPath("./own")'
OLD = Tree("own", {f"own/in/{name}": name.encode() for name in "abc"}, {"own/s": b"s"}, {"init.py": LINES})
NEW = Tree("own", {f"own/in/{n}": b"new " + n.encode() for n in "abd"} | {"menu/e": b"e"}, lines={"init.py": LINES})
MINE = "import nuke\n# mine: \u00fc"


def whole(folder: Path) -> dict[str, bytes | str | None]:
    """Every file with its bytes, every link with its target, every folder."""
    found: dict[str, bytes | str | None] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        found[name] = os.readlink(path) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return found


def without_record(folder: Path) -> dict[str, bytes | str | None]:
    return {name: data for name, data in whole(folder).items() if not name.endswith(RECORD)}


class Killed(BaseException):
    """Nothing that runs afterwards can touch the disk."""


class Axe:
    """Lets a number of changes to the disk pass, and none after them: what a SIGKILL leaves."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.folder = ""
        self.seen = 0
        sys.addaudithook(self)

    def __call__(self, event: str, words: tuple[object, ...]) -> None:
        if self.left is None or event not in ("open", "os.remove", "os.rename", "os.mkdir", "os.rmdir"):
            return
        if not str(words[0]).startswith(self.folder):
            return
        if event == "open" and not int(str(words[2] or 0)) & (os.O_WRONLY | os.O_RDWR):
            return
        self.seen += 1
        if self.left <= 0:
            raise Killed
        self.left -= 1


@pytest.fixture(scope="module")
def axe() -> Axe:
    """One for all: what listens to Python's events cannot be taken away."""
    return Axe()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder as an artist has it, with a file that others write too, without an end of line at its end."""
    (tmp_path / "place" / "menu").mkdir(parents=True)
    (tmp_path / "place" / "init.py").write_text(MINE, "utf-8")
    return tmp_path / "place"


def killed(axe: Axe, after: int, place: Path, job: object) -> bool:
    """Whether the job was still at work after so many changes."""
    axe.folder, axe.left = str(place), after
    try:
        job()  # type: ignore[operator]
    except Killed:
        return True
    finally:
        axe.left = None
    return False


@pytest.mark.parametrize("state", ["fresh", "older there", "uninstalling"])
@pytest.mark.parametrize("then", ["again", "undo"])
def test_a_kill_at_any_moment_is_repeated_or_undone(
    axe: Axe, place: Path, tmp_path: Path, state: str, then: str
) -> None:
    clean = whole(place)
    install_tree(NEW, tmp_path / "as new")
    (tmp_path / "as new" / "init.py").write_bytes(shared_file.with_lines(MINE.encode(), LINES))
    done = without_record(tmp_path / "as new")
    moments = 0
    while True:
        if state != "fresh":
            install_tree(OLD, place)
        job = (lambda: remove_tree(place, "own")) if state == "uninstalling" else (lambda: install_tree(NEW, place))
        if not killed(axe, moments, place, job):
            break
        moments += 1
        if then == "again":
            install_tree(NEW, place)
            now = without_record(place)
            now.pop("own/s", None)  # of the older one, and the user's to edit
            assert now == done, moments
        if is_installed(place, "own"):
            assert remove_tree(place, "own").kept == ()
        # killed between its first or last two changes it leaves empty folders of its own, which might be the user's
        for leftover in ("own/in", "own"):
            if (moments == 2 or state == "uninstalling") and (place / leftover).is_dir():
                (place / leftover).rmdir()
        assert whole(place) == clean, moments
    assert moments > 12, "the axe fell at every change"


@pytest.mark.parametrize("older", [False, True])
def test_a_full_disk_leaves_what_was_there(place: Path, older: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if older:
        install_tree(OLD, place)
    before, write = whole(place), disk.write_half
    for at in range(6 if older else 7):
        calls = iter(range(100))

        def full(path: Path, data: bytes, calls: Iterator[int] = calls, at: int = at) -> None:
            if next(calls) == at:
                raise OSError(errno.ENOSPC, "No space left on device", str(disk.half_of(path)))
            write(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(disk, "write_half", full)
            with pytest.raises(OutputError) as caught:
                install_tree(NEW, place)
        assert "No space left" in str(caught.value)
        assert disk._HALF not in str(caught.value), "the file is named that the user knows"
        assert caught.value.hint == "make room, then the same command again"
        assert whole(place) == before, at


def test_a_read_only_folder_says_what_to_do(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_tree(OLD, place)
    before = whole(place)

    def denied(path: str, *words: object, **more: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", denied)
    for job in (lambda: install_tree(NEW, place), lambda: remove_tree(place, "own")):
        with pytest.raises(OutputError, match="Permission denied") as caught:
            job()
        assert "--path" in str(caught.value.hint)
    assert whole(place) == before


@pytest.mark.parametrize("thing", ["file", "dead link", "folder"])
@pytest.mark.parametrize("where", ["", "own", "own/in", "own/in/a", "init.py", "menu"])
def test_what_is_in_the_way_is_named_and_nothing_is_written(tmp_path: Path, thing: str, where: str) -> None:
    fits = {"folder": ("", "own", "own/in", "menu"), "file": ("init.py",)}
    place = tmp_path / "place"
    path = place / where if where else place
    path.parent.mkdir(parents=True, exist_ok=True)
    if thing == "folder":
        path.mkdir()
    elif thing == "file":
        path.write_text("mine")
    else:
        path.symlink_to("/nowhere")
    before = whole(tmp_path)
    if where in fits.get(thing, ()):
        install_tree(NEW, place)
        assert is_installed(place, "own")
        remove_tree(place, "own")
    else:
        for dry_run in (True, False):
            with pytest.raises(OutputError, match=r"in the way|is no file|did not put it there") as caught:
                install_tree(NEW, place, dry_run=dry_run)
            assert str(path) in str(caught.value)
            assert caught.value.hint
    assert whole(tmp_path) == before


def test_a_file_that_became_a_link_is_not_written_through(place: Path, tmp_path: Path) -> None:
    install_tree(OLD, place)
    work = tmp_path / "a checkout"
    work.write_bytes(b"a")
    (place / "own/in/a").unlink()
    (place / "own/in/a").symlink_to(work)
    with pytest.raises(OutputError, match="was changed"):
        install_tree(NEW, place)
    assert work.read_bytes() == b"a"
    assert remove_tree(place, "own").kept == (place / "own/in/a",)
    assert work.read_bytes() == b"a"


def test_folders_that_were_there_stay(tmp_path: Path) -> None:
    """Resolve's Scripts/Utility, Windows' Startup folder and ~/Library/LaunchAgents may well be empty."""
    (tmp_path / "Startup" / "__pycache__").mkdir(parents=True)
    install_tree(Tree("own", {"Startup/x.cmd": b"x", "Other/y": b"y"}), tmp_path)
    install_tree(Tree("own", {"Third/z": b"z"}), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Startup", "Third", "own"]
    remove_tree(tmp_path, "own")
    assert [path.name for path in tmp_path.iterdir()] == ["Startup"]


def test_two_at_once(place: Path, tmp_path: Path) -> None:
    clean = whole(place)
    code = (
        "import sys; from pathlib import Path; from faceplate_install.putting import *; from faceplate_install.record "
        "import Tree\nfor n in range(6):\n"
        "    files = {f'own/in/{i}': (sys.argv[2] * 9000).encode() for i in range(20)}\n"
        "    t = Tree('own', files, lines={'init.py': 'x'})\n"
        "    install_tree(t, Path(sys.argv[1]))\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(place), word]) for word in "ab"]
    assert [one.wait(60) for one in both] == [0, 0]
    texts = {(place / "own/in" / str(i)).read_bytes()[:1] for i in range(20)}
    assert len(texts) == 1, "the files of one of them"
    assert (place / "init.py").read_text("utf-8").count("by `faceplate install`") == 1
    assert not list(place.rglob("*.lock"))
    assert remove_tree(place, "own").kept == ()
    assert whole(place) == clean


def test_one_that_hangs_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_tree(OLD, place)
    monkeypatch.setattr(disk, "_PATIENCE_S", 0.1)
    held, go = threading.Event(), threading.Event()

    def hang() -> None:
        with disk.alone(place / "own"):
            held.set()
            go.wait(30)

    thread = threading.Thread(target=hang)
    thread.start()
    held.wait(30)
    try:
        for job in (lambda: install_tree(NEW, place), lambda: remove_tree(place, "own")):
            with pytest.raises(OutputBusyError, match="at work"):
                job()
    finally:
        go.set()
        thread.join()
    remove_tree(place, "own")
    assert whole(place) == {"init.py": MINE.encode(), "menu": None}


# Files that others write too


@pytest.mark.parametrize(
    "before",
    [None, b"", b"\n", b"a = 1", b"a = 1\n", b"a = 1\n\n", b"a = 1\r\nb = 2\r\n", b"# \xfc\n", b"\xef\xbb\xbfa = 1\n"],
)
@pytest.mark.parametrize("editor", [None, b"\r\n"])
def test_every_byte_of_a_shared_file_stays(tmp_path: Path, before: bytes | None, editor: bytes | None) -> None:
    shared = tmp_path / "init.py"
    if before is not None:
        shared.write_bytes(before)
        shared.chmod(0o640)
    tree = Tree("own", {"own/a": b"a"}, lines={"init.py": LINES})
    install_tree(tree, tmp_path)
    assert shared.read_bytes().startswith(before or b"")
    if editor is not None:  # one that writes line ends of its own
        shared.write_bytes(shared.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", editor))
        before = before.replace(b"\r\n", b"\n").replace(b"\n", editor) if before else before
    stamp = shared.stat().st_mtime_ns
    install_tree(tree, tmp_path)
    assert shared.stat().st_mtime_ns == stamp, "it has the lines already"
    assert shared.read_bytes().count(b"pluginAddPath") == 1
    if before is not None:
        assert shared.stat().st_mode & 0o777 == 0o640
    remove_tree(tmp_path, "own")
    assert (shared.read_bytes() if shared.exists() else None) == before


def test_what_was_added_behind_the_lines_stays(tmp_path: Path) -> None:
    tree = Tree("own", {}, lines={"init.py": LINES})
    install_tree(tree, tmp_path)
    with (tmp_path / "init.py").open("a") as file:
        file.write("added = 1\n")
    install_tree(tree, tmp_path)
    install_tree(Tree("own", {}, lines={"init.py": "newer = 1"}), tmp_path)
    assert (tmp_path / "init.py").read_text().count("by `faceplate install`") == 1
    remove_tree(tmp_path, "own")
    assert (tmp_path / "init.py").read_text() == "added = 1\n"


@pytest.mark.parametrize("edit", ["# nuke.pluginAddPath", 'nuke.pluginAddPath("./mine")\nnuke.pluginAddPath', "no end"])
def test_lines_that_the_user_worked_on_are_the_users(place: Path, edit: str) -> None:
    install_tree(OLD, place)
    text = (place / "init.py").read_text("utf-8")
    text = text.replace("# faceplate: end\n", "") if edit == "no end" else text.replace("nuke.pluginAddPath", edit)
    (place / "init.py").write_text(text, "utf-8")
    with pytest.raises(OutputError, match="lines of Faceplate") as caught:
        install_tree(NEW, place)
    assert "take them out" in str(caught.value.hint)
    removed = remove_tree(place, "own")
    assert (removed.kept, removed.freed) == ((place / "init.py",), ())
    assert whole(place) == {"init.py": text.encode(), "menu": None}


def test_lines_that_the_user_took_out(place: Path) -> None:
    install_tree(OLD, place)
    (place / "init.py").write_text(MINE, "utf-8")
    assert remove_tree(place, "own", dry_run=True).freed == ()
    install_tree(OLD, place)
    assert "pluginAddPath" in (place / "init.py").read_text("utf-8")
    remove_tree(place, "own")
    assert (place / "init.py").read_text("utf-8") == MINE


def test_a_shared_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.py"
    target.write_text("a = 1\n")
    (tmp_path / "nuke").mkdir()
    (tmp_path / "nuke" / "init.py").symlink_to(target)
    install_tree(Tree("own", {}, lines={"init.py": "b = 2"}), tmp_path / "nuke")
    assert (tmp_path / "nuke" / "init.py").is_symlink()
    assert "b = 2" in target.read_text()
    remove_tree(tmp_path / "nuke", "own")
    assert (tmp_path / "nuke" / "init.py").is_symlink()
    assert target.read_text() == "a = 1\n"


def test_a_record_of_an_older_installer(place: Path) -> None:
    install_tree(OLD, place)
    path = place / "own" / RECORD
    document = json.loads(path.read_text())
    assert document.pop("folders") == ["own", "own/in"]
    assert document["lines"] == {"init.py": LINES}
    path.write_text(json.dumps({**document, "lines": ["init.py"]}))
    install_tree(NEW, place)
    remove_tree(place, "own")
    assert whole(place) == {"init.py": MINE.encode(), "menu": None}


# The command


def test_where_to_is_never_guessed(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    empty = cli("install", "nuke", "--path", "")
    assert (empty.code, "--path is empty" in empty.err) == (2, True)
    monkeypatch.setenv("HOME", str(tmp_path / "h \u00fc"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "h \u00fc"))
    monkeypatch.chdir(tmp_path)
    for word, folder in (("~/studio", tmp_path / "h \u00fc" / "studio"), ("rel/x", tmp_path / "rel" / "x")):
        assert cli("install", "nuke", f"--path={word}").code == 0
        assert (folder / "init.py").is_file()
        assert cli("install", "nuke", f"--path={word}", "--uninstall").code == 0
        gone = cli("install", "nuke", f"--path={word}", "--uninstall")
        assert (gone.code, str(folder) in gone.err, "hint" in gone.err) == (2, True, True)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    none = cli("install", "nuke")
    assert (none.code, "set HOME, or give --path" in none.err) == (2, True)
    assert cli("install", "nuke", "--path", tmp_path / "n", "--dry-run").code == 0


def test_another_version_is_said(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    assert "takes the place" not in cli("install", "nuke", "--path", tmp_path).out
    path = tmp_path / "faceplate" / RECORD
    path.write_text(path.read_text().replace(f'"faceplate": "{__version__}"', '"faceplate": "9.1.0"'))
    again = cli("install", "nuke", "--path", tmp_path)
    assert f"{__version__} takes the place of 9.1.0" in again.out
    assert f'in {tmp_path / "init.py"}: nuke.pluginAddPath("./faceplate")' in again.out
    gone = cli("install", "nuke", "--path", tmp_path, "--uninstall")
    assert gone.code == 0
    assert list(tmp_path.iterdir()) == []


def test_an_unreadable_record_is_not_called_damaged(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_tree(OLD, place)

    def denied(*_: object, **__: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(OutputError, match="cannot read"):
        putting.remove_tree(place, "own")
