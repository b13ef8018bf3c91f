"""The engine that a job names: `mesh`, or a swapper with what goes with it.

A neural engine's name is the ids of its models joined by `+`: the swapper first, then restorers and editors in the
order in which they work, and mattes anywhere: `inswapper_128+gfpgan_1_4+xseg_1`. What a model does follows from its
card. One name says all, so that jobs, hosts, servers and records need no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from ..errors import LicenceError, ModelError, SettingError
from ..face import Identity
from ..models.card import ModelCard
from ..models.sessions import SessionPool
from ..models.store import ModelStore, check_commercial
from ..models.user import user_folder
from ..nets.editors.age import FranAge, StyleAge
from ..nets.editors.expression import LivePortrait
from ..nets.mattes.face import KINDS as FACE_MATTES
from ..nets.mattes.face import FaceMatte
from ..nets.mattes.regions import RegionMatte
from ..nets.recognisers.arcface import Converter
from ..nets.restorers.restorer import Restorer
from ..nets.swappers.make import make_swapper
from ..provenance.attributes import UsedModel
from ..swap.base import Engine
from ..swap.mesh.engine import MeshEngine
from ..swap.neural.engine import NeuralEngine
from ..swap.neural.stages import (
    AgeStage,
    ExpressionStage,
    FaceMatteStage,
    MatteStage,
    PictureStage,
    RegionMatteStage,
    RestoreStage,
)
from .spec import MESH, Workbench

_PICTURES = ("restorer", "editor")
_LIVE_PORTRAIT = "liveportrait_"
_EMAP_OWNER = "inswapper_128"


@dataclass(frozen=True, slots=True)
class Chain:
    """The models of a neural engine.

    Attributes:
        swapper: first of the name.
        pictures: restorers and editors, in order; LivePortrait's several nets stand as the one that was named.
        mattes: nets that say where the face is.
    """

    swapper: ModelCard
    pictures: tuple[ModelCard, ...]
    mattes: tuple[ModelCard, ...]


def find_chain(name: str, store: ModelStore) -> Chain:
    """The models that a name asks for.

    Raises:
        SettingError: a word is no model of this machine, or its role has no place there.
    """
    first, *others = (_card(word, name, store) for word in name.split("+"))
    if first.role != "swapper":
        raise SettingError(
            f"the engine {name!r} does not begin with a swapper",
            found=f"{first.id}, a {first.role}",
            hint=_known(store),
        )
    for card in others:
        if card.role not in (*_PICTURES, "matte"):
            raise SettingError(
                f"a {card.role} has no place after the swapper in the engine {name!r}",
                expected="restorers, editors and mattes",
                found=card.id,
            )
    pictures = tuple(card for card in others if card.role in _PICTURES)
    return Chain(first, pictures, tuple(card for card in others if card.role == "matte"))


def _card(word: str, name: str, store: ModelStore) -> ModelCard:
    try:
        card = store.card(word)
    except ModelError as error:
        raise SettingError(
            f"no engine is called {name!r}", found=f"{word!r} is no model", hint=_known(store)
        ) from error
    if not card.is_here:
        raise ModelError(
            f"the model {word} is not on this machine",
            expected=f"its file, {' or '.join(card.files) or card.file}",
            hint=f"get it from {card.source.project}, read its licence, then: faceplate models add FILE",
        )
    return card


def _known(store: ModelStore) -> str:
    return f"engines on this machine: {', '.join(engine_names(store))}; faceplate models add FILE brings others"


def engine_names(store: ModelStore) -> list[str]:
    """Engines that can be named on this machine: the mesh engine and each swapper."""
    return [MESH, *(card.id for card in store.here if card.role == "swapper")]


def engines_of_user() -> tuple[str, ...]:
    """`engine_names` with the user's models; those are read again when their folder has changed."""
    folder = user_folder()
    return _engines_of(folder, folder.stat().st_mtime_ns if folder.is_dir() else 0)


@lru_cache(maxsize=4)
def _engines_of(folder: Path, changed: int) -> tuple[str, ...]:
    return tuple(engine_names(ModelStore.of_user(folder)))


def make_engine(name: str, bench: Workbench) -> Engine:
    """The engine of a job, its nets opened.

    Raises:
        SettingError: no such engine.
        ModelError: a model is not here or damaged; DeviceError: the device cannot run it.
        LicenceError: the job is commercial and a model's licence forbids that.
    """
    if name == MESH:
        return MeshEngine(torch_device(bench))
    nets = bench.nets
    chain = find_chain(name, nets.store)
    paths = [nets.store.path(one) for one in (chain.swapper.id, *_emap_owner(nets.store, chain.swapper.id))]
    return NeuralEngine(
        name,
        make_swapper(nets.get(chain.swapper.id), *paths),
        lambda identity, space: converted(identity, space, nets),
        [_picture_stage(card, nets) for card in chain.pictures],
        [_matte_stage(card, nets) for card in chain.mattes],
    )


def _emap_owner(store: ModelStore, own: str) -> Sequence[str]:
    """The model whose file holds the matrix that its kin lack, where it is here."""
    return [card.id for card in store.here if card.id == _EMAP_OWNER != own]


def _picture_stage(card: ModelCard, nets: SessionPool) -> PictureStage:
    if card.role == "restorer":
        return RestoreStage(Restorer(nets.get(card.id)))
    if card.kind == "age_fran":
        return AgeStage(FranAge(nets.get(card.id)))
    if card.kind == "age_styleganex":
        return AgeStage(StyleAge(nets.get(card.id)))
    parts = [one for one in nets.store.here if one.kind.startswith(_LIVE_PORTRAIT)]
    return ExpressionStage(LivePortrait({one.kind: nets.get(one.id) for one in parts}))


def _matte_stage(card: ModelCard, nets: SessionPool) -> MatteStage:
    net = nets.get(card.id)
    return FaceMatteStage(FaceMatte(net)) if card.kind in FACE_MATTES else RegionMatteStage(RegionMatte(net))


def converted(identity: Identity, space: str, nets: SessionPool) -> torch.Tensor | None:
    """(512,) of an identity in a space that it has no vector of, by the first converter that is here."""
    for card in nets.store.here:
        if card.role == "converter" and card.embedding == space and card.embedding_from in identity.embeddings:
            converter = Converter(nets.get(card.id))
            given = torch.from_numpy(identity.embeddings[card.embedding_from].copy())[None]
            return converter.convert(given.to(nets.device.torch_name), card.embedding_from)[0]
    return None


def engine_models(name: str, bench: Workbench) -> tuple[UsedModel, ...]:
    """The models of an engine, for headers, ledger, report and what makes a frame stale."""
    if name == MESH:
        return ()
    chain = find_chain(name, bench.nets.store)
    cards = [chain.swapper, *chain.pictures, *chain.mattes]
    if any(card.kind.startswith(_LIVE_PORTRAIT) for card in cards):
        cards += [one for one in bench.nets.store.here if one.kind.startswith(_LIVE_PORTRAIT) and one not in cards]
    if chain.swapper.embedding:
        cards += [
            one for one in bench.nets.store.here if one.role == "converter" and one.embedding == chain.swapper.embedding
        ][:1]
    return tuple(UsedModel(card.id, card.sha256, card.licence, card.commercial is True) for card in cards)


def engine_version(name: str) -> str:
    """Of the engine that has this name: another one gives other pictures."""
    return MeshEngine.version if name == MESH else NeuralEngine.version


def check_engine(name: str, store: ModelStore, *, commercial: bool) -> None:
    """Refuse an engine before anything is read.

    Raises:
        SettingError, ModelError, LicenceError: as `make_engine`.
    """
    if name == MESH:
        return
    chain = find_chain(name, store)
    for card in (chain.swapper, *chain.pictures, *chain.mattes):
        if commercial:
            try:
                check_commercial(card)
            except LicenceError as error:
                raise LicenceError(
                    f"the engine {name} cannot be used in this job: {error.message}",
                    expected=error.expected,
                    found=error.found,
                    hint=error.hint,
                ) from error


def torch_device(bench: Workbench) -> torch.device:
    """Where the pixel work runs: beside the nets."""
    return torch.device(bench.nets.device.torch_name)
