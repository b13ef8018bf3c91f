"""Keys: made once, private, and a list of clients that cannot be damaged in silence."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import zmq
from zmq.utils import z85

from faceplate.errors import ResourceError, SettingError
from faceplate_client.errors import UnsafeFile
from faceplate_server.team.keys import KeyFolder, TeamClient, parse_key
from tests.integration.conftest import Cli, cli  # noqa: F401 - fixture


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


def key(number: int) -> bytes:
    return bytes([number]) * 32


def test_a_pair_is_made_once_and_is_a_pair(keys: KeyFolder) -> None:
    pair = keys.own()
    assert keys.own() == pair
    assert z85.encode(pair.public) == zmq.curve_public(z85.encode(pair.secret))
    assert pair.secret.hex() not in repr(pair)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
def test_files_are_private_and_open_ones_are_refused(keys: KeyFolder) -> None:
    keys.own()
    keys.allow(TeamClient("anna", key(1)))
    assert keys.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in keys.folder.iterdir()} == {0o600}
    (keys.folder / "secret.key").chmod(0o644)
    with pytest.raises(UnsafeFile):
        keys.own()
    (keys.folder / "clients.json").chmod(0o660)
    with pytest.raises(UnsafeFile):
        keys.clients()
    (keys.folder / "clients.json").chmod(0o600)
    keys.folder.chmod(0o755)
    with pytest.raises(UnsafeFile):
        keys.clients()


def test_clients_come_and_go(keys: KeyFolder) -> None:
    assert keys.clients() == {}
    before = keys.stamp()
    keys.allow(TeamClient("anna", key(1), ("/show",)))
    keys.allow(TeamClient("bert", key(2)))
    assert keys.stamp() != before
    assert keys.clients()[key(1)] == TeamClient("anna", key(1), ("/show",))
    keys.allow(TeamClient("anna", key(3)))  # a new machine
    assert {one.name: one.public for one in keys.clients().values()} == {"anna": key(3), "bert": key(2)}
    keys.allow(TeamClient("berta", key(2)))  # a new name
    assert sorted(one.name for one in keys.clients().values()) == ["anna", "berta"]
    keys.remove("anna")
    assert list(keys.clients()) == [key(2)]
    with pytest.raises(SettingError, match="no client is called"):
        keys.remove("anna")


@pytest.mark.parametrize("name", ["", "Anna", "a b", "../x", "-a", "a" * 33, "ä"])
def test_names_that_cannot_be_used(keys: KeyFolder, name: str) -> None:
    with pytest.raises(SettingError):
        keys.allow(TeamClient(name, key(1)))
    with pytest.raises(SettingError):
        keys.allow(TeamClient("anna", key(1), ("show",)))


@pytest.mark.parametrize("text", ["", "00", "z" * 64, "0" * 63, "0" * 65, "٠" * 64])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(SettingError, match="is no public key"):
        parse_key(text)
    assert parse_key(" AB" + "0" * 62 + "\n") == bytes([0xAB]) + bytes(31)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'[{"name": "a"}]', b"[" * 9999, b"\xff", b'[{"name":"a","key":"x","roots":[]}]']
)
def test_damaged_files_are_told(keys: KeyFolder, data: bytes) -> None:
    keys.own()
    for name, ask in (("clients.json", keys.clients), ("secret.key", keys.own)):
        path = keys.folder / name
        path.write_bytes(data)
        path.chmod(0o600)
        with pytest.raises(ResourceError, match="damaged"):
            ask()


def test_the_command(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    folder = ["--keys", tmp_path / "k"]
    shown = cli("keys", *folder)
    assert shown.out.split() == ["public", "key", KeyFolder(tmp_path / "k").own().public.hex()]
    assert cli("keys", *folder, "allow", "anna", key(1).hex(), "--root", "/show").code == 0
    assert KeyFolder(tmp_path / "k").clients()[key(1)].roots == ("/show",)
    assert key(1).hex() in cli("keys", *folder, "list").out
    assert cli("keys", *folder, "allow", "anna", "nonsense").code == 2
    assert cli("keys", *folder, "remove", "nobody").code == 2
    assert cli("keys", *folder, "remove", "anna").code == 0
    assert KeyFolder(tmp_path / "k").clients() == {}
    if os.name == "posix":
        (tmp_path / "k").chmod(0o755)
        assert cli("keys", *folder).code == 3
