"""Marks that skip, or fail where the environment says that they must not."""

from __future__ import annotations

import os

import pytest


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None and not _has_cuda():
        if os.environ.get("FACEPLATE_REQUIRE_GPU") == "1":
            pytest.fail("FACEPLATE_REQUIRE_GPU=1, but torch sees no CUDA device")
        pytest.skip("no CUDA device")
