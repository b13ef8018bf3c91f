"""Recognises which known net a file is: by its hash, else by what goes in and out, and by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ModelError
from .card import ModelCard, TensorSpec

_TYPES = {1: "float32", 7: "int64", 10: "float16", 11: "float64"}
_Names = dict[str, str]
_EMAP = (512, 512)
"""Shape of the matrix that an inswapper carries as its last constant."""


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output as the file has it.

    Attributes:
        name: in the file.
        shape: with the batch; 0 for a length that is free.
        dtype: "float32" and so on.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Signature:
    """What can be told of a file without running it.

    Attributes:
        inputs: those that are not constants.
        outputs: in the file's order.
        last_constant: shape of the last initializer, () for none.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    last_constant: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recognised:
    """Which known net a file is.

    Attributes:
        base: the known card.
        by: "hash", or "signature" with what else spoke for it.
        nodes: name in the file by name on the card, of inputs and outputs.
        dtypes: type in the file by name on the card.
        shapes: lengths that the file fixes and the card leaves free, by name on the card, without the batch.
    """

    base: ModelCard
    by: str
    nodes: Mapping[str, str]
    dtypes: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]


def read_signature(path: Path) -> Signature:
    """What goes into a net and comes out of it.

    Raises:
        ModelError: no ONNX file, or a damaged one.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, ValueError, OSError) as error:
        raise ModelError(
            f"{path} is no ONNX file or is damaged",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            hint="fetch the file again from its source; an interrupted download is cut off",
        ) from error
    apart = sorted({_location(one) for one in model.graph.initializer if one.external_data})
    if apart:
        raise ModelError(
            f"{path} keeps its weights in other files",
            expected="one file with its weights, of which the hash says all",
            found=", ".join(apart[:3]),
            hint="put them into one file: onnx.save(onnx.load(FILE), NEW_FILE)",
        )
    constants = {one.name for one in model.graph.initializer}
    if not model.graph.output or not model.graph.node:
        raise ModelError(f"{path} is no net", expected="an ONNX graph with nodes and outputs", found="an empty one")
    last = tuple(model.graph.initializer[-1].dims) if model.graph.initializer else ()
    inputs = tuple(_port(value) for value in model.graph.input if value.name not in constants)
    return Signature(inputs, tuple(_port(value) for value in model.graph.output), last)


def _location(tensor: Any) -> str:
    return next((one.value for one in tensor.external_data if one.key == "location"), "?")


def _port(value: Any) -> Port:
    tensor = value.type.tensor_type
    shape = tuple(max(int(dim.dim_value), 0) for dim in tensor.shape.dim)
    return Port(value.name, shape, _TYPES.get(tensor.elem_type, f"type {tensor.elem_type}"))


def recognise(
    path: Path, digest: str, signature: Signature, known: Mapping[str, ModelCard], wanted: str | None = None
) -> Recognised:
    """Which known net a file is.

    Args:
        path: of the file; its name tells nets of one signature apart.
        digest: SHA-256 of the file.
        signature: see `read_signature`.
        known: cards that are not of shipped nets.
        wanted: id that the user says it is, None to find out.

    Raises:
        ModelError: none fits, several fit, or not the one that its name or the user says.
    """
    # What DeepFaceLive writes has a name of its own kind.
    kinds = {card.kind for card in known.values() if (card.kind == "dfm") == (path.suffix.lower() == ".dfm")} - {""}
    fitting = {card.id: one for card in known.values() if card.kind in kinds and (one := _fit(card, signature))}
    by_hash = next((card for card in known.values() if digest in card.hashes), None)
    by_name = [card.id for card in known.values() if path.name.lower() in (name.lower() for name in card.files)]
    if wanted is not None and wanted not in known:
        raise ModelError(f"there is no model {wanted}", expected=f"one of {', '.join(known)}", hint="check the name")
    if by_hash is not None and wanted in (None, by_hash.id) and by_hash.id in fitting:
        return Recognised(by_hash, "hash", *fitting[by_hash.id])
    choices = [wanted] if wanted else [one for one in by_name if one in fitting] or (by_name[:1] or list(fitting))
    if len(choices) == 1 and choices[0] in fitting:
        why = "signature, and the user says so" if wanted else "signature and name" if by_name else "signature"
        return Recognised(known[choices[0]], why, *fitting[choices[0]])
    if len(choices) == 1:
        raise ModelError(
            f"{path} is not the net {choices[0]}",
            expected=_said(known[choices[0]]),
            found=_found(signature),
            hint="check where the file comes from, or say which net it is: --as ID",
        )
    raise ModelError(
        f"which net {path} is cannot be told" if fitting else f"{path} is none of the nets that are known",
        expected=f"one of {', '.join(fitting)}" if fitting else "a net that faceplate models list names",
        found=_found(signature),
        hint="say which one it is: --as ID" if fitting else "its author says what kind of net it is",
    )


def _fit(card: ModelCard, signature: Signature) -> tuple[_Names, _Names, dict[str, tuple[int, ...]]] | None:
    """Names, types and lengths in the file by name on the card; None where the card is of another net."""
    if card.id.startswith("inswapper") and signature.last_constant != _EMAP:
        return None
    pairs = []
    for specs, ports in ((card.inputs, signature.inputs), (card.outputs, signature.outputs)):
        found = _pair(specs, ports)
        if found is None:
            return None
        pairs += found
    nodes = {spec.name: port.name for spec, port in pairs}
    shapes = {
        spec.name: tuple(a or b for a, b in zip(spec.shape, port.shape[-len(spec.shape) :], strict=True))
        for spec, port in pairs
        if 0 in spec.shape
    }
    return nodes, {spec.name: port.dtype for spec, port in pairs}, shapes


def _pair(specs: Sequence[TensorSpec], ports: Sequence[Port]) -> list[tuple[TensorSpec, Port]] | None:
    """By name where all names agree, else in order; more outputs than the card has are left alone."""
    if len(ports) < len(specs) or any(port.dtype not in _TYPES.values() for port in ports[: len(specs)]):
        return None
    named = {port.name: port for port in ports}
    by_name = all(spec.file_name in named for spec in specs)
    chosen = [named[spec.file_name] for spec in specs] if by_name else list(ports[: len(specs)])
    pairs = list(zip(specs, chosen, strict=True))
    return pairs if all(_same(spec, port) for spec, port in pairs) else None


def _same(spec: TensorSpec, port: Port) -> bool:
    shape = port.shape[1:] if spec.batched else port.shape
    if len(port.shape) != len(spec.shape) + spec.batched:
        return False
    # A file may say less than the card (free lengths), and the card less than the file.
    return all(0 in (a, b) or a == b for a, b in zip(spec.shape, shape, strict=True))


def _said(card: ModelCard) -> str:
    return "; ".join(f"{one.name} {one.layout} {list(one.shape)}" for one in (*card.inputs, *card.outputs))


def _found(signature: Signature) -> str:
    sides = (signature.inputs, signature.outputs)
    return " -> ".join(", ".join(f"{one.name} {list(one.shape)} {one.dtype}" for one in side) for side in sides)
