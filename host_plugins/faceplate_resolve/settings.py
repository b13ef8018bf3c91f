"""What an artist sets: a small JSON file, and the recipe that is made of it.

    {"identity": "/show/jane.fpid", "track": "main", "handles": 12, "settings": {"strength": 0.8}, ...}

The dialog writes it; where Resolve has no dialog it is written by hand. A key that is not known is an error, since a
misspelt one would change nothing and nobody would notice.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faceplate_client import wire
from faceplate_client.errors import BadClip, FolderFailed, HostError
from faceplate_client.host import PlaceMode
from faceplate_client.job_record import Recipe, write_whole
from faceplate_client.launch import COMMAND
from faceplate_client.outcome import Manner
from faceplate_client.task import Servers

from .host import MARK_COLOUR, Choices

LAYERS = ("rgba",)
"""Of results: the picture alone. Resolve reads one layer of an EXR file."""
VALUES = (
    "strength",
    "shape",
    "colour",
    "detail",
    "keep_eyes",
    "keep_mouth",
    "occluders",
    "matte_grow",
    "matte_soften",
    "yaw_fade_from",
    "yaw_fade_to",
)
"""Settings of the server, with the same names, ranges and defaults."""
COLOURS = (
    *("Orange", "Apricot", "Yellow", "Lime", "Olive", "Green", "Teal", "Navy"),
    *("Blue", "Purple", "Violet", "Pink", "Tan", "Beige", "Brown", "Chocolate"),
)
"""Clip colours that Resolve has."""


@dataclass(frozen=True)
class Settings:
    """The settings file; keys are the attributes.

    Attributes:
        identity: path of the .fpid file whose face goes in.
        track: "main", "all", or a track's number.
        engine: of the server.
        settings: of the server, by name; see VALUES.
        handles: frames more at either end, as far as the source has them.
        missing: "error" refuses a clip with a missing file, "hold" shows the frame before.
        project: title to check consent against; "" for none.
        commercial: refuse weights whose licence forbids paid work.
        bake: let Resolve render clips whose source could be read, too.
        above: results on the track above rather than takes.
        folder: where results go; "" for `faceplate` in the user's home folder.
        input_space: of all sources, over what the project says, as the server calls it; "" for what the project says.
        mark_colour: clip colour that marks clips for batches.
        colour_spaces: names of linear spaces, the server's to Resolve's.
        server_command: how the server is started, if none runs; none for `faceplate serve`.
        all_timelines: batches take every timeline, not the current one alone.
        preset: render preset for which a batch adds a job; "" for none.
        render_folder: where that render goes; "" for `render` in the result folder.
    """

    identity: str = ""
    track: str | int = "main"
    engine: str = "mesh"
    settings: Mapping[str, float] = field(default_factory=dict)
    handles: int = 0
    missing: str = "error"
    project: str = ""
    commercial: bool = False
    bake: bool = False
    above: bool = False
    folder: str = ""
    input_space: str = ""
    mark_colour: str = MARK_COLOUR
    colour_spaces: Mapping[str, str] = field(default_factory=dict)
    server_command: tuple[str, ...] = ()
    all_timelines: bool = False
    preset: str = ""
    render_folder: str = ""

    def recipe(self) -> Recipe:
        """What actions make of clips.

        Raises:
            BadClip: no identity is chosen, or its file is not there.
        """
        path = os.path.expanduser(self.identity)
        if not path or not os.path.isfile(path):
            raise BadClip(
                "no identity is chosen" if not path else f"there is no identity file {path}",
                hint='choose a .fpid file; in the settings file: "identity": "/path/to/someone.fpid"',
            )
        return Recipe(
            assignments=(wire.Assignment(os.path.abspath(path), self.track),),
            settings={name: ((0, float(value)),) for name, value in self.settings.items()},
            layers=LAYERS,
            engine=self.engine,
            input_space=self.input_space or None,
            handles=self.handles,
            missing=self.missing,
            project=self.project or None,
            commercial=self.commercial,
            bake=self.bake,
        )

    def choices(self) -> Choices:
        """For the host."""
        folder = Path(os.path.expanduser(self.folder)).absolute() if self.folder else None
        return Choices(folder, self.input_space, self.mark_colour, dict(self.colour_spaces), self.above)

    def manner(self) -> Manner:
        """How results are placed."""
        return Manner(mode=PlaceMode.ABOVE if self.above else PlaceMode.TAKE)

    def servers(self, *, start: bool) -> Servers:
        """Which server."""
        return Servers(start=start, command=self.server_command or COMMAND)


def settings_file(system: str = sys.platform, environment: Mapping[str, str] = os.environ, home: str = "~") -> Path:
    """Where the file lies: the user's configuration folder, or $FACEPLATE_RESOLVE_SETTINGS.

    Args:
        system: as `sys.platform`.
        environment: variables.
        home: of the user.
    """
    said = environment.get("FACEPLATE_RESOLVE_SETTINGS")
    if said:
        return Path(said)
    base = Path(os.path.expanduser(home))
    if system == "win32":
        return Path(environment.get("APPDATA") or base / "AppData" / "Roaming") / "Faceplate" / "resolve.json"
    if system == "darwin":
        return base / "Library" / "Application Support" / "Faceplate" / "resolve.json"
    return Path(environment.get("XDG_CONFIG_HOME") or base / ".config") / "faceplate" / "resolve.json"


def load(path: Path) -> Settings:
    """Read the file; the defaults where there is none.

    Raises:
        HostError: it cannot be read, or holds what is not known.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"the settings file {path} cannot be read", found=str(error)) from error
    try:
        document = json.loads(text)
    except ValueError as error:
        raise HostError(
            f"the settings file {path} is no JSON", found=str(error), hint="correct or delete it"
        ) from error
    if not isinstance(document, dict):
        raise HostError(f"the settings file {path} holds no object", found=type(document).__name__)
    return _from(document, path)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_table(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, dict) and all(isinstance(one, kinds) for one in value.values())


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "track": (lambda value: value in ("main", "all") or _is_int(value), '"main", "all" or a number'),
    "settings": (lambda value: _is_table(value, (int, float)), "names with numbers"),
    "colour_spaces": (lambda value: _is_table(value, (str,)), "names with names"),
    "server_command": (
        lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
        "a list of words",
    ),
    "missing": (lambda value: value in ("error", "hold"), '"error" or "hold"'),
    "mark_colour": (lambda value: value in COLOURS, f"one of {', '.join(COLOURS)}"),
}
_KINDS: dict[type, tuple[Callable[[Any], bool], str]] = {
    bool: (lambda value: isinstance(value, bool), "true or false"),
    int: (_is_int, "a whole number"),
    str: (lambda value: isinstance(value, str), "text"),
}


def _from(document: dict[str, Any], path: Path) -> Settings:
    known = [spec.name for spec in dataclasses.fields(Settings)]
    plain = Settings()
    for key, value in document.items():
        if key not in known:
            raise _wrong(path, key, f"one of {', '.join(known)}", key, known)
        right, expected = _RULES.get(key) or _KINDS[type(getattr(plain, key))]
        if not right(value):
            raise _wrong(path, key, expected, repr(value), ())
    for name in document.get("settings", ()):
        if name not in VALUES:
            raise _wrong(path, f"settings: {name}", f"one of {', '.join(VALUES)}", name, VALUES)
    values = {**document, "server_command": tuple(document.get("server_command", ()))}
    return Settings(**values)


def _wrong(path: Path, key: str, expected: str, found: str, names: Sequence[str]) -> HostError:
    close = difflib.get_close_matches(found, names, 1)
    hint = f"did you mean {close[0]!r}?" if close else "correct the file, or delete it for the defaults"
    return HostError(f"{path}: {key} is not right", expected=expected, found=found, hint=hint)


def save(settings: Settings, path: Path) -> Path:
    """Write the file in one step; what is as it would be anyway is left out but for the identity.

    Raises:
        FolderFailed: it cannot be written.
    """
    plain = Settings()
    names = [spec.name for spec in dataclasses.fields(Settings)]
    told = {name: getattr(settings, name) for name in names if getattr(settings, name) != getattr(plain, name)}
    document = {"identity": settings.identity, **told}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderFailed(f"cannot make the folder {path.parent}", found=str(error)) from error
    write_whole(path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8"))
    return path
