"""What running out of memory looks like, in every library that works on a frame."""

from __future__ import annotations

import errno

from ..errors import DeviceMemoryError

# What onnxruntime, its memory arena, CUDA, torch's CPU allocator, OpenCV and the C++ library say.
_WORDS = (
    "out of memory",
    "failed to allocate",
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "bad allocation",
    "available memory of",
    "insufficient memory",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one that it was made of, says that memory ran out.

    `torch.OutOfMemoryError`, Python's and numpy's MemoryError and our own have types; for onnxruntime, OpenCV and torch
    on a CPU the words decide.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, (MemoryError, DeviceMemoryError)) or type(link).__name__ == "OutOfMemoryError":
            return True
        if isinstance(link, OSError):
            if link.errno == errno.ENOMEM:
                return True
        elif says_out_of_memory(str(link)):
            return True
        link = link.__cause__
    return False


def says_out_of_memory(text: str) -> bool:
    """Whether a library's message says so."""
    lowered = text.lower()
    return any(words in lowered for words in _WORDS)
