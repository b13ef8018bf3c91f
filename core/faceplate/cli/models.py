"""`faceplate models`: which nets there are, whether their files are whole, what their licences allow."""

from __future__ import annotations

import typer

from . import options
from .show import print_lines

app = typer.Typer(help="Nets: list them, verify their files.", no_args_is_help=True)


@app.command("list")
def list_models(json: options.Json = False) -> int:
    """Each net with its role, licence and whether paid work may use it."""
    from ..models.catalogue import load_catalogue

    for card in load_catalogue().values():
        facts = {
            "role": card.role,
            "file": card.file,
            "sha256": card.sha256,
            "source": str(card.source),
            "licence": card.licence,
            "training data": card.training_data,
            "commercial use": "allowed" if card.commercial else "forbidden",
        }
        print_lines({"id": card.id, **facts} if json else facts, as_json=json, title=card.id)
    return 0


@app.command("verify")
def verify(json: options.Json = False) -> int:
    """Compare every file with its recorded hash; exit code 3 when one is absent or differs."""
    from ..models.store import ModelStore

    store = ModelStore()
    for card in store.here:
        store.path(card.id)
        print_lines({"id": card.id, "state": "whole"} if json else {card.id: "whole"}, as_json=json)
    return 0
