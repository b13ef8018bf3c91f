"""`python -m faceplate_resolve`: Resolve's commands from outside, with its window or without.

    check                        which Resolve runs, and whether a server answers
    apply, refresh, remove       as in the menu, for the clip under the playhead or the selected ones
    batch [--project NAME] [--timeline NAME | --every] [--preset NAME [--render] [-o DIR]] [--save] [--report FILE]

Exit code: 0 done, 1 frames, clips or the render failed, 2 bad input or no Resolve, 3 no server, 130 stopped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from faceplate_client.connection import Place
from faceplate_client.errors import ClientError, ConnectionFailed
from faceplate_client.job_record import write_whole
from faceplate_client.task import Servers

from . import api, batch
from .commands import Commands
from .connect import connect, library, load, open_project, running, start
from .edition import edition_of
from .settings import load as load_settings
from .settings import settings_file
from .talk import Console, words_of


def main(words: list[str] | None = None, module: Any = None) -> int:
    """Parse the command line and run it; the exit code.

    Args:
        words: of the command line, None for the program's own.
        module: Resolve's scripting library where it is loaded already.
    """
    options = _parser().parse_args(words)
    path = options.settings if options.settings is not None else settings_file()
    console = Console(path)
    process: subprocess.Popen[bytes] | None = None
    try:
        bmd = module if module is not None else load(library())
        if options.start and running(bmd) is None:
            application, process = start(bmd, options.resolve, window=options.window)
        else:
            application = connect(bmd)
        edition_of(application)
        commands = Commands(application, console, path)
        if options.what != "batch":
            return commands.run(options.what)
        return _batch(commands, application, options, path, console)
    except ClientError as error:
        console.tell(words_of(error))
        return 3 if isinstance(error, ConnectionFailed) else 2
    finally:
        if process is not None:
            process.terminate()


def _batch(commands: Commands, application: api.Application, options: Any, path: Path, console: Console) -> int:
    if options.project:
        open_project(application, options.project)
    settings = load_settings(path)
    order = batch.Order(
        settings,
        batch.EVERY if options.every else options.timeline,
        options.preset or settings.preset,
        None if options.output is None else options.output.absolute(),
        options.render,
        options.save,
        None
        if options.server_folder is None
        else Servers(Place(options.server_folder), True, settings.servers(start=True).command),
    )
    report = commands.run_batch(order)
    console.tell(report.text)
    if options.report is not None:
        write_whole(options.report, (json.dumps(report.to_json(), indent=1) + "\n").encode("utf-8"))
    return report.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m faceplate_resolve", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("apply", "refresh", "remove", "batch", "check"))
    parser.add_argument("--settings", type=Path, help="settings file (default: the user's)")
    parser.add_argument("--start", action="store_true", help="start Resolve where none runs, and end it afterwards")
    parser.add_argument("--window", action="store_true", help="with --start: with its window, not -nogui")
    parser.add_argument("--resolve", default="", help="with --start: Resolve's program")
    parser.add_argument("--project", default="", help="open this project first")
    parser.add_argument("--timeline", default=batch.CURRENT, help="name (default: the current one)")
    parser.add_argument("--every", action="store_true", help="every timeline")
    parser.add_argument("--preset", default="", help="add a render job with this preset")
    parser.add_argument("--render", action="store_true", help="start that render and wait for it")
    parser.add_argument("-o", "--output", type=Path, help="folder of the render")
    parser.add_argument("--save", action="store_true", help="save the project at the end")
    parser.add_argument("--report", type=Path, help="JSON file")
    parser.add_argument("--server-folder", type=Path, help="private folder of the server")
    return parser


if __name__ == "__main__":
    sys.exit(main())
