"""`faceplate identity`: make and show identity files."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .show import print_warning

app = typer.Typer(help="Identity files: make one from photos, show one.", no_args_is_help=True)


@app.command("make")
def make(
    name: Annotated[str, typer.Argument(help="What to call the person.")],
    photos: Annotated[list[Path], typer.Argument(help="Photos, one face each: JPEG, PNG, TIFF or EXR.")],
    consent: Annotated[Path | None, typer.Option(help="TOML file with the consent record.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Default: NAME.fpid.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Make an identity file; each photo that cannot be used is named with the reason."""
    from ..jobs.identity import make_identity_file, show_identity_file

    bench = options.open_workbench(device=device, threads=1)
    with bench.nets:
        made = make_identity_file(name, photos, consent, output or Path(f"{name}.fpid"), bench)
    for refusal in made.refusals:
        print_warning(f"{refusal.path} was not used: {refusal.reason}", as_json=json)
    _print(made.path, show_identity_file(made.path), as_json=json)
    return 0


@app.command("show")
def show(
    file: Annotated[Path, typer.Argument(help="FILE.fpid")],
    json: options.Json = False,
) -> int:
    """What an identity file holds: photos, resolution, consent."""
    from ..jobs.identity import show_identity_file

    _print(file, show_identity_file(file), as_json=json)
    return 0


def _print(file: Path, text: str, *, as_json: bool) -> None:
    print(json_text.dumps({"file": str(file), "text": text}) if as_json else f"{file}\n{text}")
