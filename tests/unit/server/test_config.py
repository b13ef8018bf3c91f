"""The configuration file: every key checked, none unknown."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from faceplate.errors import SettingError
from faceplate_server.config import ServerConfig, read_config

README = Path(__file__).parents[3] / "server" / "README.md"


def write(folder: Path, text: str) -> Path:
    path = folder / "server.toml"
    path.write_text(text, "utf-8")
    return path


def test_file_then_command_line(tmp_path: Path) -> None:
    path = write(tmp_path, 'threads = 3\nroots = ["/show", "/lib"]\nidle_s = 60\n')
    config = read_config(path, threads=5, device=None)
    assert (config.threads, config.roots, config.idle_s, config.device) == (5, ("/show", "/lib"), 60, "auto")
    assert read_config(None) == ServerConfig()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("thread = 3", "threads"),
        ("threads = -1", "0..1024"),
        ("threads = true", "whole number"),
        ('threads = "3"', "whole number"),
        ("max_clients = 0", "1..100000"),
        ('roots = ["show"]', "absolute"),
        ("roots = []", "list of paths"),
        ("roots = [3]", "list of paths"),
        ('transport = "udp"', "ipc or tcp"),
        ("idle_s = nan", "idle_s"),
        ("x = ", "cannot be read"),
        ("name = 3", "text"),
    ],
)
def test_wrong_keys_and_values(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_config(write(tmp_path, text))
    assert word in f"{caught.value} {caught.value.hint}"


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("device", "workers", "devices"),
    [
        ("cpu", 3, ("cpu", "cpu", "cpu")),
        ("auto", 1, ("auto",)),
        ("cuda:0, cuda:1", 1, ("cuda:0", "cuda:1")),
    ],
)
def test_a_device_for_each_worker(device: str, workers: int, devices: tuple[str, ...]) -> None:
    assert ServerConfig(device=device, workers=workers).devices == devices


@pytest.mark.parametrize(
    ("device", "workers"),
    [("gpu", 1), ("cuda:0,cuda:0", 1), ("cuda,cuda:0", 1), ("cpu,cuda:0", 1), ("cpu,cpu", 1), ("cuda:0", 2), ("", 1)],
)
def test_devices_that_make_no_server(device: str, workers: int) -> None:
    with pytest.raises(SettingError):
        ServerConfig(device=device, workers=workers)


def test_the_readme_lists_every_key_with_its_default() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", README.read_text("utf-8"), re.M))
    for spec in dataclasses.fields(ServerConfig):
        plain = dict if spec.metadata["pairs"] else list
        default = plain(spec.default) if isinstance(spec.default, tuple) else spec.default
        shown = str(default).replace("'", '"') if not isinstance(default, str) else f'"{default}"'
        shown = shown.lower() if isinstance(default, bool) else shown
        shown = shown.lower() if isinstance(default, bool) else shown
        assert listed.get(spec.name) == f"`{shown}`", spec.name


def test_the_installers_configuration_is_good() -> None:
    config = read_config(README.parents[1] / "installers" / "server" / "server.toml")
    assert config.roots == ("/show", "/lib")
