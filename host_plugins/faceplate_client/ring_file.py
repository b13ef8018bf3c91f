"""The file of a frame ring: made and locked, filled with blocks, checked before it is mapped, swept when stale."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from .errors import ConnectionFailed, RingError, RingNoSpace, RingStale, RingWrongFormat, RingWrongSize
from .private import default_folder, is_locked, open_private, same_file, try_lock
from .slot_header import FILE_HEADER, MAGIC, MAX_SLOTS, PAGE, VERSION, data_offset

NO_SPACE = (errno.ENOSPC, errno.ENOMEM, errno.EDQUOT, errno.EFBIG)


def owner_alive(path: Path) -> bool:
    """True while the ring's owner lives; False when it is gone, or the file is."""
    return is_locked(path)


def sweep(folder: Path | None = None) -> list[Path]:
    """Remove the rings whose owners are gone; returns their paths. What is in use or not ours is left alone."""
    removed = []
    for path in sorted((folder if folder is not None else default_folder()).glob("*.ring")):
        try:
            descriptor = open_private(path, os.O_RDWR)
        except (OSError, ConnectionFailed):
            continue  # gone meanwhile, or a file that is no ring of this user
        try:
            if try_lock(descriptor) and same_file(descriptor, path):
                path.unlink()
                removed.append(path)
        finally:
            os.close(descriptor)
    return removed


def new_locked_file(folder: Path) -> tuple[Path, int]:
    """Path and descriptor of a new file that this process has locked."""
    while True:
        path = folder / f"{os.getpid()}-{secrets.token_hex(8)}.ring"
        try:
            descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            kind = RingNoSpace if error.errno in NO_SPACE else RingError
            raise kind(f"cannot make the frame ring {path}", found=error.strerror) from error
        # a sweep may have come between making and locking: then the file is gone, or about to be
        if try_lock(descriptor) and same_file(descriptor, path):
            return path, descriptor
        os.close(descriptor)


def reserve(descriptor: int, total: int) -> None:
    """Give the file all its blocks, so that no later write can fail for want of them."""
    try:
        os.posix_fallocate(descriptor, 0, total)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        # macOS, Windows and some file systems cannot reserve; zeros that were written are reserved as well
        zeros = bytes(1 << 20)
        left = total
        while left:
            left -= os.write(descriptor, zeros[: min(left, len(zeros))])


def check_file(path: Path, descriptor: int, file_id: str, generation: int, largest: int | None) -> int:
    """The size to map; see `Ring.attach` for what is raised."""
    found = os.fstat(descriptor)
    if f"{found.st_dev}:{found.st_ino}" != file_id:
        raise RingStale(f"{path} is another file now", expected=file_id, found=f"{found.st_dev}:{found.st_ino}")
    if largest is not None and found.st_size > largest:
        raise RingWrongSize(
            f"the frame ring {path} is too large", expected=f"{largest} bytes", found=str(found.st_size)
        )
    start = os.read(descriptor, FILE_HEADER.size)
    if len(start) < FILE_HEADER.size or not start.startswith(MAGIC):
        raise RingWrongFormat(f"{path} is not a frame ring")
    _, version, slots, room, offset, total, number, _ = FILE_HEADER.unpack(start)
    if version != VERSION:
        raise RingWrongFormat(f"{path} is a frame ring of another version", expected=str(VERSION), found=str(version))
    if number != generation:
        raise RingStale(f"{path} is another ring now", expected=str(generation), found=str(number))
    sound = 1 <= slots <= MAX_SLOTS and room > 0 and room % PAGE == 0 and offset == data_offset(slots)
    if not sound or total != offset + slots * room or total != found.st_size:
        raise RingWrongSize(
            f"the size of {path} contradicts its header",
            expected=f"{slots} slots of {room} bytes in {total}",
            found=f"{found.st_size} bytes",
        )
    return int(total)


def close_file(path: Path, descriptor: int, owner: int | None) -> None:
    """Close the file; its owner, but not a forked child of it, removes it first and so keeps the lock to the end."""
    if owner is not None and owner == os.getpid():
        if os.name == "nt":  # an open file cannot be removed there
            os.close(descriptor)
            descriptor = -1
        with contextlib.suppress(OSError):  # swept by the next server if it cannot be removed now
            if descriptor < 0 or same_file(descriptor, path):
                path.unlink()
    if descriptor >= 0:
        os.close(descriptor)
