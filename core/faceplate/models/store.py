"""Finds the file of a net, makes sure that it is the one on its card, and holds the licence."""

from __future__ import annotations

import datetime
import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import LicenceError, ModelError
from .card import ModelCard
from .catalogue import data_folder, load_catalogue


class ModelStore:
    """The nets that can be used.

    A file is hashed when it is first asked for, and again only when its size or time of change is another. May be used
    from several threads.
    """

    @classmethod
    def of_user(cls, folder: Path | None = None) -> ModelStore:
        """The shipped nets and those that the user has added.

        Args:
            folder: of the user's models; None for `user_folder`.

        Raises:
            ModelError: a record in it is damaged.
        """
        from .user import load_user_cards, user_folder

        folder = user_folder() if folder is None else folder
        store = cls([folder], {**load_catalogue(), **load_user_cards(folder)})
        store._added = folder
        return store

    def __init__(self, folders: Sequence[Path] = (), catalogue: Mapping[str, ModelCard] | None = None) -> None:
        """
        Args:
            folders: searched in this order, before the folder of the shipped nets.
            catalogue: cards by id; None for the shipped ones.
        """
        self._folders = (*folders, data_folder())
        self._catalogue = load_catalogue() if catalogue is None else catalogue
        self._added: Path | None = None
        self._verified: dict[Path, tuple[int, int]] = {}
        self._lock = threading.Lock()

    @property
    def cards(self) -> Mapping[str, ModelCard]:
        """All cards, by id."""
        return self._catalogue

    @property
    def here(self) -> tuple[ModelCard, ...]:
        """The cards that a file belongs to, in the catalogue's order."""
        return tuple(card for card in self._catalogue.values() if card.is_here)

    def card(self, model_id: str) -> ModelCard:
        """The card of a net.

        Raises:
            ModelError: no card has this id.
        """
        if self._added is not None and not (model_id in self._catalogue and self._catalogue[model_id].is_here):
            # Perhaps it was added meanwhile; a server lives long.
            from .user import load_user_cards

            self._catalogue = {**self._catalogue, **load_user_cards(self._added)}
        if model_id not in self._catalogue:
            raise ModelError(
                f"there is no model {model_id}", expected=f"one of {', '.join(self._catalogue)}", hint="check the name"
            )
        return self._catalogue[model_id]

    def path(self, model_id: str, *, commercial: bool = False) -> Path:
        """The verified file of a net.

        Args:
            model_id: as in the catalogue.
            commercial: whether the job is paid work.

        Raises:
            LicenceError: the job is commercial and the weights' licence forbids that.
            ModelError: no card or file, or a file that is not the one on the card.
        """
        card = self.card(model_id)
        if commercial:
            check_commercial(card)
        path = self._find(card)
        with self._lock:
            self._verify(card, path)
        return path

    def _find(self, card: ModelCard) -> Path:
        if not card.is_here:
            raise ModelError(
                f"model {card.id} is not installed",
                expected=f"{' or '.join(card.files)}, from {card.source.url}",
                found="no file was added",
                hint=f"get the file (licence: {card.licence}), then: faceplate models add FILE",
            )
        if card.path and Path(card.path).is_file():
            return Path(card.path)
        for folder in self._folders:
            if (folder / card.file).is_file():
                return folder / card.file
        raise ModelError(
            f"the file of model {card.id} is missing",
            expected=card.path or f"{card.file} in {', '.join(str(folder) for folder in self._folders)}",
            found="no such file",
            hint=_repair(card),
        )

    def _verify(self, card: ModelCard, path: Path) -> None:
        try:
            status = path.stat()
            state = (status.st_size, status.st_mtime_ns)
            if self._verified.get(path) == state:
                return
            if status.st_size != card.bytes:
                kind = "truncated" if status.st_size < card.bytes else "too long"
                raise ModelError(
                    f"the file {path} of model {card.id} is {kind}",
                    expected=f"{card.bytes} bytes",
                    found=f"{status.st_size} bytes",
                    hint=_repair(card),
                )
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(
                f"the file {path} of model {card.id} cannot be read", found=str(error), hint="check its permissions"
            ) from error
        if digest != card.sha256:
            raise ModelError(
                f"the file {path} of model {card.id} is corrupted or another version",
                expected=f"sha256 {card.sha256}",
                found=f"sha256 {digest}",
                hint=_repair(card),
            )
        self._verified[path] = state


def check_commercial(card: ModelCard) -> None:
    """Refuse weights for paid work whose licence forbids it, or of which nobody knows whether it does.

    Raises:
        LicenceError: with the licence as it is stated.
    """
    if card.commercial is True:
        _check_day(card)
        return
    known = card.commercial is False
    raise LicenceError(
        f"the licence of model {card.id} {'forbids' if known else 'is not known to allow'} commercial work",
        expected="weights that may be used commercially",
        found=card.licence,
        hint=f"choose another model, or get a licence from {card.authors} and record it on the card",
    )


def _check_day(card: ModelCard) -> None:
    if card.valid_until and datetime.date.today().isoformat() > card.valid_until:
        raise LicenceError(
            f"the licence of model {card.id} for commercial work has ended",
            expected="a licence that is valid today",
            found=f"{card.licence}, valid until {card.valid_until}",
            hint="renew the licence and add the model again: faceplate models add FILE --licensed TEXT",
        )


def _repair(card: ModelCard) -> str:
    if card.kind:
        return "add it again: faceplate models add FILE"
    return f"reinstall Faceplate, or put {card.file} (from {card.source.project} {card.source.version}) there again"
