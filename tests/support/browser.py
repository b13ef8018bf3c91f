"""A real browser without a window: Chromium where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars"),
)


def browse(address: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a page and end: with `--dump-dom` its elements are on standard output, its complaints on standard error."""
    if CHROMIUM is None:
        if os.environ.get("FACEPLATE_REQUIRE_CHROMIUM") == "1":
            pytest.fail("FACEPLATE_REQUIRE_CHROMIUM=1, and no Chromium is installed")
        pytest.skip("no Chromium is installed")
    command = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", "--v=0", *options]
    return subprocess.run([*command, address], capture_output=True, text=True, timeout=90, check=True)


def complaints(log: str) -> list[str]:
    """What the page's console says."""
    return [line for line in log.splitlines() if "CONSOLE" in line]
