"""`faceplate doctor`: what this installation can do, and what to do about what it cannot."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import FaceplateError
from . import options
from .show import print_lines

_PACKAGES = (
    *("faceplate", "torch", "onnxruntime", "onnxruntime-gpu", "numpy", "opencv-python-headless"),
    *("OpenEXR", "OpenImageIO", "opencolorio", "fileseq"),
)


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} on {platform.platform()}"
    for name in _PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            if name != "onnxruntime-gpu":
                yield name, "not installed"


def _providers() -> Iterator[tuple[str, str]]:
    """What onnxruntime was built with, and whether it runs here."""
    from ..models.runtimes.providers import PROVIDERS, probe

    for key, obstacle in probe().items():
        yield f"provider {key}", obstacle or f"{PROVIDERS[key].title} runs"


def _nets(device: str, precision: str) -> Iterator[tuple[str, str]]:
    """Load and run every net once."""
    with options.open_pool(device=device, threads=1, precision=precision) as pool:
        yield "device", f"{pool.device} ({pool.device.reason})"
        for card in pool.store.here:
            net = pool.get(card.id)
            net.warm_up()
            start = time.perf_counter()
            net.warm_up()
            spent = 1000 * (time.perf_counter() - start)
            yield f"net {card.id}", f"{net.device}, {net.provider}, {net.precision}, {spent:.1f} ms"


def doctor(
    device: options.Device = "auto", precision: options.Precision = "float32", json: options.Json = False
) -> int:
    """Check versions, device, nets and colour configuration; exit code 3 when the device or a net cannot be used."""
    from ..colour.spaces import ColourConfig

    lines: dict[str, Any] = dict(_versions())
    problem: FaceplateError | None = None
    try:
        config = ColourConfig.open()
        lines["OCIO configuration"] = f"{config.name} ({config.source})"
        lines |= dict(_providers())
        lines |= dict(_nets(device, precision))
    except FaceplateError as error:
        problem = error
    lines["state"] = "ready" if problem is None else str(problem)
    print_lines(lines, as_json=json)
    if problem is not None:
        raise problem
    return 0
