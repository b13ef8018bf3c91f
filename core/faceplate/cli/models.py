"""`faceplate models`: which nets there are, whether their files are whole, what their licences allow; adding more."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ModelError, SettingError
from . import options
from .show import print_lines, print_warning

if TYPE_CHECKING:
    from ..models.card import ModelCard
    from ..models.packs import Pack
    from ..models.user import Offer

app = typer.Typer(help="Nets: list them, add your own, verify files, show licences.", no_args_is_help=True)

_ALLOWED = {True: "allowed", False: "forbidden", "unknown": "unknown: refused in commercial jobs"}


@app.command("list")
def list_models(json: options.Json = False) -> int:
    """Each net with its role, licence and whether paid work may use it: those here, and those that can be added."""
    from ..models.packs import find_packs, pack_folders
    from ..models.store import ModelStore

    for card in ModelStore.of_user().cards.values():
        facts: dict[str, Any] = {
            "role": card.role,
            "state": "here" if card.is_here else "not here: faceplate models add FILE",
            "file": card.path or card.file or " or ".join(card.files),
            "sha256": card.sha256 or " or ".join(card.hashes) or "not published",
            "source": str(card.source),
            **_licence_facts(card),
        }
        print_lines({"id": card.id, **facts} if json else facts, as_json=json, title=card.id)
    for pack in find_packs(pack_folders()):
        facts = {"folder": str(pack.folder), "files": ", ".join(file.name for file in pack.files)}
        facts["licence"] = pack.licence
        facts["state"] = f"found: faceplate models add {pack.name}"
        print_lines({"pack": pack.name, **facts} if json else facts, as_json=json, title=f"InsightFace {pack.name}")
    return 0


def _licence_facts(card: ModelCard) -> dict[str, str]:
    until = f" until {card.valid_until}" if card.valid_until else ""
    return {
        "licence": card.licence + until,
        "of": card.authors,
        "training data": "; ".join(filter(None, (card.training_data.rstrip("."), card.training_licence))),
        "commercial use": _ALLOWED[card.commercial],
    }


@app.command("licences")
def licences(json: options.Json = False) -> int:
    """What may be done with the nets that are here, and who took which licence when."""
    from ..models.store import ModelStore
    from ..models.user import read_taken, user_folder

    taken = read_taken(user_folder())
    for card in ModelStore.of_user().here:
        facts: dict[str, Any] = _licence_facts(card)
        if card.id in taken:
            one = taken[card.id]
            facts["taken"] = f"{one.licence}, by {one.by} on {one.on}"
        print_lines({"id": card.id, **facts} if json else facts, as_json=json, title=card.id)
    return 0


@app.command("verify")
def verify(json: options.Json = False) -> int:
    """Compare every file with its recorded hash; exit code 3 when one is absent or differs."""
    from ..models.store import ModelStore

    store, bad = ModelStore.of_user(), 0
    for card in store.here:
        state = "whole"
        try:
            store.path(card.id)
        except ModelError as error:
            state, bad = str(error), bad + 1
        print_lines({"id": card.id, "state": state} if json else {card.id: state}, as_json=json)
    if bad:
        raise ModelError(f"{bad} of {len(store.here)} models are not whole", hint="add their files again")
    return 0


@app.command("add")
def add(
    file: Annotated[str, typer.Argument(help="ONNX or DFM file; or an InsightFace pack: its name or folder.")],
    wanted: Annotated[
        str | None, typer.Option("--as", help="Which known net it is, where that cannot be told.")
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the licence that is shown without being asked.")
    ] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Leave the file where it is instead of copying.")
    ] = False,
    licensed: Annotated[
        str | None, typer.Option(help="A licence of your own that allows paid work, e.g. a contract's number.")
    ] = None,
    json: options.Json = False,
) -> int:
    """Add a net: recognise the file, show its licence, record that you take it; exit code 3 when it is damaged."""
    from ..models.user import look_at

    pack = _pack(file)
    if pack is None:
        _add_one(look_at(Path(file), wanted), accept=accept, in_place=in_place, licensed=licensed, json=json)
        return 0
    granted = licensed or (pack.licence if pack.commercial else None)
    for path in pack.files:
        try:
            offer = look_at(path)
        except ModelError as error:
            print_warning(f"{path.name} was not added: {error}", as_json=json)
            continue
        _add_one(
            offer, accept=accept, in_place=True, licensed=granted, json=json, note=pack.licence, until=pack.valid_until
        )
    return 0


@app.command("quantise")
def quantise(
    model: Annotated[str, typer.Argument(help="Net of yours that takes an aligned crop.")],
    identities: Annotated[list[Path], typer.Argument(help="FILE.fpid: their photos are what it is measured on.")],
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Make ID_int8, whose convolutions compute in eight bits; the error against float32 is measured and printed."""
    from ..jobs.quantise import quantise_model
    from ..models.user import user_folder

    with options.open_pool(device=device, threads=0) as pool:
        card, error = quantise_model(model, identities, pool, user_folder(), getpass.getuser())
    print_lines({"id": card.id, "error": str(error), "bytes": card.bytes}, as_json=json)
    return 0


def _pack(text: str) -> Pack | None:
    from ..models.packs import find_packs, pack_folders, read_pack

    if Path(text).is_dir():
        return read_pack(Path(text))
    named = [pack for pack in find_packs(pack_folders()) if pack.name == text]
    return named[0] if named and not Path(text).exists() else None


def _add_one(
    offer: Offer,
    *,
    accept: bool,
    in_place: bool,
    licensed: str | None,
    json: bool,
    note: str = "",
    until: str = "",
) -> None:
    from ..models.user import add as add_file
    from ..models.user import user_folder

    base = offer.found.base
    facts = {"file": str(offer.path), "recognised": f"{base.title}, by {offer.found.by}", **_licence_facts(base)}
    if note:
        facts["licence file"] = note
    if licensed:
        facts["your licence"] = licensed
    print_lines({"id": offer.model_id, **facts} if json else facts, as_json=json, title=offer.model_id)
    _ask(offer.model_id, accept=accept)
    card = add_file(
        offer,
        user_folder(),
        getpass.getuser(),
        in_place=in_place,
        licensed=licensed,
        valid_until=until if licensed else "",
        check=_run_once,
    )
    done = {"state": f"added as {card.id}", "commercial use": _ALLOWED[card.commercial]}
    print_lines({"id": card.id, **done} if json else done, as_json=json, title="")


def _ask(model_id: str, *, accept: bool) -> None:
    if accept:
        return
    if not sys.stdin.isatty():
        raise SettingError(f"the licence of {model_id} was not taken", hint="read it above, then add --accept")
    if not typer.confirm("Do you take this licence?", default=False):
        raise SettingError(f"the licence of {model_id} was not taken", hint="nothing was added")


def _run_once(card: ModelCard, path: Path) -> str:
    """A file that cannot be opened and run is damaged, whatever its card says; how it takes several items at once."""
    from ..models.device import choose_device
    from ..models.runtimes.opening import try_net
    from ..models.sessions import open_net

    cpu = choose_device("cpu")
    open_net(card, path, cpu).load()
    return try_net(card, path, cpu)
