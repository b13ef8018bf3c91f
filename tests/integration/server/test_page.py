"""The status page of a real server: who gets it, what it tells during a batch, and how it looks in a real browser."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from faceplate.errors import SettingError
from faceplate_client import Client, FrameHeader, Ring, wire
from faceplate_client.errors import ClientError, ServerError
from faceplate_server.config import read_config
from faceplate_server.page.board import Board, NetLine
from faceplate_server.page.counts import Counts
from faceplate_server.page.document import document
from faceplate_server.page.listener import Listener, Request, Response
from faceplate_server.page.nvml import Gpu
from faceplate_server.page.places import page_file, read_url, token_file
from faceplate_server.page.service import static_file
from faceplate_server.page.system import Sample
from tests.integration.conftest import Cli
from tests.integration.server.conftest import Running, running, start_server
from tests.support.browser import browse, complaints
from tests.support.plates import moving_plate

HEADER = FrameHeader(64, 48, colour_space="ACEScg")


def fetch(url: str, **headers: str) -> tuple[int, str, Any]:
    """(status, text, headers)."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


def state_of(server: Running) -> dict[str, Any]:
    status, text, _ = fetch(read_url(server.place) + "state.json")
    assert status == 200
    found: dict[str, Any] = json.loads(text)
    return found


def look_at_a_frame(client: Client, ring: Ring, number: int = 1) -> None:
    plate = ring.put(HEADER, bytes(HEADER.nbytes))
    client.result(client.submit_frame(frame=number, plate=plate, assignments=(), engine="null"), 20)
    ring.release(plate.slot)


def test_only_who_knows_the_token_sees_it(server: Running) -> None:
    url = read_url(server.place)
    base, token = url.rstrip("/").rsplit("/", 1)
    assert urlsplit(url).hostname == "127.0.0.1"
    for path in ("", "page.css", "page.js", "icon.svg", "state.json", "metrics"):
        assert fetch(url + path)[0] == 200
        for wrong in ("", "/x", "/" + token[:-1], "/" + token + "a", "/" + token.swapcase(), "/%00"):
            assert fetch(f"{base}{wrong}/{path}")[0] in (401, 404), (wrong, path)
    assert fetch(url.rstrip("/"))[0] == 404
    assert fetch(url + "../metrics")[0] == 404
    assert fetch(url + "nothing")[0] == 404
    assert len(token) >= 32
    for path in (page_file(server.place), token_file(server.place)):
        assert path.stat().st_mode & 0o777 == 0o600
    assert token not in server.log()


def test_prometheus_comes_with_the_token_in_its_header(server: Running) -> None:
    base = read_url(server.place).rsplit("/", 2)[0]
    token = token_file(server.place).read_text("ascii")
    status, text, headers = fetch(f"{base}/metrics", Authorization=f"Bearer {token}")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert len(list(text_string_to_metric_families(text))) > 10
    for wrong in ("", "Bearer", "Bearer x", f"Basic {token}", f"bearer {token}x"):
        status, _, headers = fetch(f"{base}/metrics", Authorization=wrong)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")


def test_a_site_that_points_its_name_here_gets_nothing(server: Running) -> None:
    parts = urlsplit(read_url(server.place))
    for host, status in ((f"localhost:{parts.port}", 200), (f"rebound.example:{parts.port}", 403)):
        connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=10)
        connection.request("GET", parts.path + "state.json", headers={"Host": host, "Origin": "http://rebound.example"})
        answer = connection.getresponse()
        assert answer.status == status
        assert answer.headers["Access-Control-Allow-Origin"] is None
        connection.close()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_gets_nothing(server: Running) -> None:
    script = (
        "import encodings.idna, os, sys, urllib.request, urllib.error\n"  # what is imported later may be closed to them
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for path in sys.argv[2:]:\n"
        "    try: print('open:', open(path).read())\n"
        "    except OSError: pass\n"
        "for path in ('', 'metrics', 'state.json', 'x/'):\n"
        "    try: print('got:', urllib.request.urlopen(sys.argv[1] + path, timeout=10).read())\n"
        "    except urllib.error.HTTPError as error: assert error.code in (401, 404), error\n"
    )
    base = read_url(server.place).rsplit("/", 2)[0] + "/"
    files = [str(page_file(server.place)), str(token_file(server.place))]
    shown = subprocess.run([sys.executable, "-c", script, base, *files], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout) == (0, ""), shown.stderr


def test_what_happened_is_told(server: Running, until: Callable[..., None]) -> None:
    before = state_of(server)
    with server.client("watched host") as client, server.ring(1, HEADER.nbytes) as ring:
        for number in range(12):
            look_at_a_frame(client, ring, number)
        with pytest.raises(ServerError):
            client.result(
                client.submit_range(plate="/none/p.####.exr", output="/none/o.####.exr", frames=None, assignments=())
            )
        until(lambda: state_of(server)["frames_done"] >= before["frames_done"] + 12)
        until(lambda: "watched host" in [one["name"] for one in state_of(server)["clients"]])
        state = state_of(server)
        (error,) = [one for one in state["errors"] if one["client"] == "watched host"]
        assert error["code"] in ("input", "not_found")
        assert error["hint"]
        assert state["state"] == "ready"
        assert state["devices"][0]["provider"] == "CPUExecutionProvider"
        assert {net["precision"] for net in state["nets"]} == {"float32"}
        assert {net["id"] for net in state["nets"]} >= {"face_detector"}
        assert 0 < state["memory"]["warm_budget_mb"] <= 2048
        assert state["memory"]["process_mb"] > 50
        _, text, _ = fetch(read_url(server.place) + "metrics")
        families = {family.name: family for family in text_string_to_metric_families(text)}
        done = {tuple(one.labels.values()): one.value for one in families["faceplate_frames"].samples}
        assert done["interactive", "done"] >= 12
    assert state["gpus"] or state["gpus_silent"]


def test_a_browser_shows_a_batch_at_work(cli: Cli, identity: Path, tmp_path: Path, until: Callable[..., None]) -> None:
    plate = moving_plate(480, 300, 120, face_width_px=120).write(tmp_path / "plate")
    person = (wire.Assignment(str(identity)),)
    with running() as server, server.client("nuke <b>16.0</b>") as client, server.client("viewer") as viewer:
        job = client.submit_range(plate=plate, output=str(tmp_path / "o.####.exr"), frames=None, assignments=person)
        with server.ring(1, HEADER.nbytes) as ring:
            look_at_a_frame(viewer, ring)
        bad = viewer.submit_range(plate="/none", output=str(tmp_path / "x.####.exr"), frames=None, assignments=person)
        with pytest.raises(ServerError):
            viewer.result(bad)
        until(lambda: any(line["done"] for line in state_of(server)["jobs"]), 60)
        # the plots leave out the five seconds that are being counted
        until(lambda: any(state_of(server)["plots"]["rate"]["batch"]), 60)
        shown = browse(read_url(server.place), tmp_path, "--dump-dom", "--virtual-time-budget=2500")
        client.cancel(job)
    assert complaints(shown.stderr) == []
    page = re.sub(r"\s+", " ", shown.stdout)
    assert re.search(r'id="state" class="pill ready" role="status">ready<', page)
    assert "nuke &lt;b&gt;16.0&lt;/b&gt;" in page
    assert "batch range" in page
    assert re.search(r"\d+ of 120", page)
    for kind in ("interactive", "batch"):
        assert re.search(rf'<path class="line {kind}"[^>]* d="M[0-9.]+', page)
    assert re.search(r'<p class="hint">[^<]+</p>', page)
    assert "CPUExecutionProvider" in page
    assert "float32" in page
    assert re.search(r"No temperature, power or clocks of a GPU|°C", page)
    assert re.search(r'role="alert" hidden', page)


def test_a_browser_shows_a_gpu_that_is_held_back(tmp_path: Path) -> None:
    """The page's own files over a state that no machine of ours has."""
    gpu = Gpu(
        0, "NVIDIA RTX 6000", "GPU-1", 88, 291.4, 300.0, 1410, 2505, 9001, 99.0, 30_000.0, 49_140.0, ("power limit",)
    )
    counts = Counts()
    board = Board(
        at=0.0,
        state="ready",
        instance="ab12",
        version="0.1.0",
        uptime_s=90_000.0,
        devices=(wire.Device("cuda:0", "cuda", "CUDAExecutionProvider"),),
        summary="cuda:0 by CUDAExecutionProvider (auto: CUDA is present), 3 frames at once",
        frames_done=123_456,
        nets=(
            NetLine("face_mesh", "cuda:0", "CUDAExecutionProvider", "float32"),
            NetLine("restorer", "cuda:0", "torch", "bfloat16 (rms error 0.4 %)"),
        ),
        clients=(),
        jobs=(),
        job_counts=Counter(),
        memory_mb=2100.0,
        warm_mb=2000.0,
        warm_budget_mb=2048.0,
        rings=0,
    )
    state = document(board, counts.read(), Sample(counts.read().now, 16, 3.2, 4.0, 1e5, 2e5, (gpu,), ""), "cuda1")

    def answer(request: Request) -> Response:
        if request.path == "/t/state.json":
            return Response(HTTPStatus.OK, json.dumps(state).encode(), "application/json")
        name = request.path.removeprefix("/t/") or "page.html"
        kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
        return Response(HTTPStatus.OK, static_file(name), kinds[name.rsplit(".", 1)[1]])

    listener = Listener(0, answer)
    shown = browse(f"http://127.0.0.1:{listener.port}/t/", tmp_path, "--dump-dom", "--virtual-time-budget=2000")
    listener.close()
    assert complaints(shown.stderr) == []
    for text in ("88 °C", "291 W of 300", "1410 MHz of 2505", "9001 MHz", "29.3 GB of 48.0 GB", "99 %", "held back"):
        assert text in shown.stdout
    assert re.search(r'<dd class="bad">power limit</dd>', shown.stdout)
    assert re.search(r'<div class="bar bad">', shown.stdout)  # the warm memory is nearly full
    assert "Nobody is connected." in shown.stdout
    assert re.search(r"frames lie in</dt><dd[^>]*>the GPU's memory<", shown.stdout)
    assert re.search(r"runs nets by</dt><dd[^>]*>CUDAExecutionProvider, torch<", shown.stdout)
    assert re.search(r"nets compute in</dt><dd[^>]*>bfloat16, float32<", shown.stdout)
    assert "bfloat16 (rms error 0.4 %), cuda:0" in shown.stdout


def test_nothing_is_left_of_it_after_the_end_and_a_browser_says_so(tmp_path: Path) -> None:
    with running() as server:
        page, base = fetch(read_url(server.place))[1], read_url(server.place)
        shown = {name: fetch(base + name)[1] for name in ("page.css", "page.js", "icon.svg")}
        files = page_file(server.place), token_file(server.place)
        assert all(file.exists() for file in files)
        with server.client() as client:
            client.stop()
        assert server.process.wait(60) == 0
        assert not any(file.exists() for file in files)
        with pytest.raises(ClientError):
            server.client()
    for name, text in {"index.html": page, **shown}.items():
        (tmp_path / name).write_text(text, "utf-8")
    seen = browse((tmp_path / "index.html").as_uri(), tmp_path, "--dump-dom", "--virtual-time-budget=2500")
    assert 'class="pill gone"' in seen.stdout
    assert re.search(r'<p id="lost" role="alert">', seen.stdout)


def test_status_prints_the_address(cli: Cli, server: Running) -> None:
    words = ["status", "--folder", server.place.folder, "--page"]
    assert cli(*words).out.strip() == read_url(server.place)
    assert json.loads(cli(*words, "--json").out) == {"page": read_url(server.place)}


def test_open_opens_it(cli: Cli, server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    assert cli("status", "--folder", server.place.folder, "--open").code == 0
    assert opened == [read_url(server.place)]
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    assert cli("status", "--folder", server.place.folder, "--open").code == 3


def test_without_a_page_and_with_a_port_of_its_own(cli: Cli, server: Running, tmp_path: Path) -> None:
    port = urlsplit(read_url(server.place)).port
    with running(config="page = false\n") as silent:
        assert not page_file(silent.place).exists()
        ran = cli("status", "--folder", silent.place.folder, "--page")
        assert (ran.code, "page = true" in ran.err) == (3, True)
        taken = start_server(tmp_path / "s", config=f"page_port = {port}\n")
        assert taken.process.wait(60) == 2
        assert not taken.place.file.exists()
        with silent.client() as client:
            client.stop()
        assert silent.process.wait(60) == 0
    for values, found in (({"page": 1}, "true or false"), ({"page_port": 70_000}, "0..65535")):
        with pytest.raises(SettingError, match=re.escape(found)):
            read_config(None, **values)
