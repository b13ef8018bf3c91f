"""The README says what the code does: settings, layers, commands, environment variables, folders."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from faceplate.cli.main import app
from faceplate.deliver import LAYERS
from faceplate.job import SETTING_FIELDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_every_setting_with_its_default_and_meaning() -> None:
    for name, field in SETTING_FIELDS.items():
        row = next(line for line in README.splitlines() if f"| `{name}` |" in line)
        default = {True: "on", False: "off"}[field.default] if isinstance(field.default, bool) else f"{field.default:g}"
        assert f"| {default} |" in row
        assert field.metadata["doc"] in row


def test_every_layer() -> None:
    for name, meaning in LAYERS.items():
        assert f"| `{name}` | {meaning} |" in README


def test_every_command() -> None:
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        for words in [f"{name} {sub}" for sub in getattr(command, "commands", {})] or [name]:
            assert re.search(rf"faceplate {words.split()[0]}\b", README), words
            assert words.split()[-1] in README


def test_every_environment_variable() -> None:
    used = set()
    for folder in ("core", "host_plugins", "tests", "installers"):
        for path in (ROOT / folder).rglob("*.py"):
            used |= set(re.findall(r"\bFACEPLATE_[A-Z_]+\b", path.read_text("utf-8")))
    assert {name for name in used if f"`{name}" not in README} == set()


def test_pictures_and_folders_are_there() -> None:
    for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (ROOT / target).is_file(), target
    for folder in re.findall(r"^\| `([a-z_./]+/)`", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
