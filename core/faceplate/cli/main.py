"""The command line: `faceplate COMMAND`. The only place where an error becomes an exit code.

Exit codes: 0 done, 1 done but frames failed (listed), 2 bad input, 3 device or model not available, 130 cancelled.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

import typer
from typer.exceptions import TyperException

from ..errors import Cancelled, DeviceError, FaceplateError, InputError
from . import analyse, apply, batch, bench, check, demo, doctor, farm, identity, models, render, report
from .show import print_error

app = typer.Typer(
    name="faceplate",
    help="Face replacement for film plates: float, scene-linear, bit-exact outside the matte.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.add_typer(identity.app, name="identity")
app.command("analyse")(analyse.analyse)
app.command("apply")(apply.apply)
app.command("render")(render.render)
app.command("batch")(batch.batch)
app.command("check")(check.check)
app.add_typer(farm.app, name="farm")
app.command("report")(report.report)
app.add_typer(models.app, name="models")
app.command("doctor")(doctor.doctor)
app.command("bench")(bench.bench)


def _version(show: bool) -> None:
    if show:
        from .. import __version__

        print(f"faceplate {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Face replacement for film plates."""


def _add_plugins(words: Sequence[str]) -> None:
    """Commands that other packages bring: the one that is called, all of them for a list. Others are not imported."""
    known = {command.name for command in app.registered_commands}
    for entry in entry_points(group="faceplate.commands"):
        if entry.name not in known and (entry.name in words[:1] or not words or words[0] in ("-h", "--help")):
            found = entry.load()
            if isinstance(found, typer.Typer):
                app.add_typer(found, name=entry.name)
            else:
                app.command(entry.name)(found)


def _print_anything() -> None:
    """A name that the terminal cannot show is printed as escapes, a closed output swallows: no job must die of it."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _check_words(words: Sequence[str]) -> None:
    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise InputError(
                f"{word!a} is not valid Unicode",
                hint="rename the file or folder; if its name looks right, set the locale: LC_ALL=C.UTF-8",
            )


def _refused(error: OSError) -> InputError:
    """For what the system refuses at a place where nobody expected it."""
    return InputError(
        f"cannot use {error.filename}" if error.filename else "the system refused",
        found=error.strerror or str(error),
        hint="check the path, its permissions and the space; then run the same command again",
    )


def _tell(error: FaceplateError, *, as_json: bool) -> None:
    """Say what went wrong, on standard error where the output itself is what is full or gone."""
    try:
        print_error(error, as_json=as_json)
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            print_error(error, as_json=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        arguments: without the program's name; default those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    _add_plugins(words)
    _print_anything()
    try:
        _check_words(words)
        code = app(words, standalone_mode=False)
    except FaceplateError as error:
        _tell(error, as_json=as_json)
        return error.exit_code
    except typer.Abort:
        return Cancelled.exit_code
    except TyperException as error:
        if not error.format_message():  # only the help was asked for, by giving nothing
            return InputError.exit_code
        hint = "faceplate --help shows the commands, faceplate COMMAND --help their options"
        _tell(InputError(error.format_message(), hint=hint), as_json=as_json)
        return 2
    except KeyboardInterrupt:
        _tell(Cancelled("stopped at once", hint="run the same command again to go on"), as_json=as_json)
        return Cancelled.exit_code
    except BrokenPipeError:
        return 1
    except OSError as error:
        _tell(_refused(error), as_json=as_json)
        return InputError.exit_code
    except MemoryError:
        _tell(DeviceError("out of memory", hint="give fewer --threads; finished frames are kept"), as_json=as_json)
        return DeviceError.exit_code
    return code if isinstance(code, int) else 0
