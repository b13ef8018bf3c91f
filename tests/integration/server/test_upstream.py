"""A team: who is let in, what is sent, what comes back, and what happens when the line or a server dies."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import zmq
from zmq.utils import z85

from faceplate.provenance.ledger import verify_ledger
from faceplate_client import FrameHeader, wire
from faceplate_client.errors import ServerError
from faceplate_client.slots import Ring, State
from faceplate_server.team import link
from faceplate_server.team.keys import KeyFolder
from faceplate_server.team.rewrite import SENT
from tests.integration.conftest import Cli, leftovers, outputs
from tests.integration.server.conftest import Running, wait_ready
from tests.integration.server.teams import HOST, Team, free_port, team_of
from tests.integration.server.test_jobs import local  # noqa: F401 - fixture
from tests.support.proxy import Line

Until = Callable[[Callable[[], bool]], None]
HD = FrameHeader(1920, 1080, colour_space="ACEScg", frame=1)
SMALL = FrameHeader(64, 48, colour_space="ACEScg", frame=1)


def noise(header: FrameHeader, seed: int = 1) -> bytes:
    """Pixels that hardly pack: a line has to carry all of them."""
    return np.random.default_rng(seed).random(header.nbytes // 4, np.float32).tobytes()


def null_frame(ring: Ring, header: FrameHeader, pixels: bytes, **options: object) -> dict[str, object]:
    plate = ring.put(header, pixels)
    return {"frame": 1, "plate": plate, "assignments": (), "engine": "null", **options}


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    with team_of() as one:
        yield one


@pytest.fixture(scope="module")
def anna(team: Team) -> Running:
    return team.local("anna")


@pytest.fixture
def shot(small_plate: str, tmp_path: Path) -> str:
    """The small plate in a folder of its own, without a sidecar."""
    folder = tmp_path / "shot"
    shutil.copytree(Path(small_plate).parent, folder, ignore=shutil.ignore_patterns("*.json"))
    return str(folder / Path(small_plate).name)


def submit(running: Running, plate: str, output: Path, identity: Path, **options: object) -> wire.End:
    with running.client() as client:
        people = (wire.Assignment(str(identity)),)
        job = client.submit_range(plate=plate, output=str(output), frames=None, assignments=people, **options)
        return client.result(job, 120)


# What is done, and what is left behind


def test_a_range_is_written_here_as_if_it_was_done_here(
    team: Team,
    anna: Running,
    local: Path,  # noqa: F811
    small_plate: str,
    shot: str,
    identity: Path,
    tmp_path: Path,
    cli: Cli,
) -> None:
    out = tmp_path / "out" / "o.####.exr"
    end = submit(anna, shot, out, identity)
    assert isinstance(end, wire.Done)
    assert (dict(end.counts), end.folder) == ({"done": 6}, str(tmp_path / "out" / "o.faceplate"))
    assert outputs(out.parent) == outputs(local)
    folder = Path(end.folder)
    ledger = verify_ledger(folder / "faceplate.ledger.jsonl")
    assert [entry["user"] for entry in ledger.entries] == ["anna", "anna"]
    assert (ledger.entries[0]["plate"], ledger.entries[0]["output"]) == (shot, str(out))
    report = json.loads((folder / "job.json").read_text("utf-8"))
    assert (report["plate"], report["output"]) == (shot, str(out))
    spool = str(team.spool).encode()
    assert [path for path in folder.rglob("*") if path.is_file() and spool in path.read_bytes()] == []
    sidecar = (folder / Path(small_plate).name.replace(".####.exr", ".faces.json")).read_text("utf-8")
    beside = Path(small_plate.replace(".####.exr", ".faces.json")).read_text("utf-8")
    assert sidecar == beside.replace(str(Path(small_plate).parent), str(Path(shot).parent))
    assert (folder / "report.html").exists()
    assert leftovers(tmp_path) == []
    words = ["apply", shot, "--identity", identity, "-o", out, "--device", "cpu", "--json"]
    assert cli(*words).event("done")["counts"] == {"kept": 6}
    assert dict(submit(anna, shot, out, identity).counts) == {"kept": 6}  # type: ignore[union-attr]


def test_files_that_both_machines_see_are_not_sent(
    team: Team,
    local: Path,  # noqa: F811
    shot: str,
    identity: Path,
    tmp_path: Path,
) -> None:
    mount = tmp_path / "mnt"
    mount.symlink_to(Path(shot).parent, target_is_directory=True)  # the same storage under another name
    paths = f'[paths]\n"{Path(shot).parent}" = "{mount}"\n'
    bert = team.local("bert", roots=(str(Path(shot).parent),), config=paths)
    out = Path(shot).parent / "out" / "o.####.exr"
    end = submit(bert, shot, out, identity)
    assert isinstance(end, wire.Done)
    assert end.folder == str(out.parent / "o.faceplate")
    assert outputs(out.parent) == outputs(local)
    sent = list((team.spool / "bert" / "contents").iterdir())
    assert [path.stat().st_size for path in sent] == [identity.stat().st_size]


def test_a_folder_that_is_another_one_there_is_told(
    team: Team, shot: str, identity: Path, tmp_path: Path, until: Until
) -> None:
    other = tmp_path / "other"
    shutil.copytree(Path(shot).parent, other)
    first = sorted(other.glob("*.exr"))[0]
    first.write_bytes(first.read_bytes()[:-1] + b"x")
    carl = team.local("carl", roots=(str(other),), config=f'[paths]\n"{Path(shot).parent}" = "{other}"\n')
    with pytest.raises(ServerError, match="does not have the client's file") as caught:
        submit(carl, shot, tmp_path / "o.####.exr", identity)
    assert caught.value.code == "not_found"
    assert "[paths]" in caught.value.hint
    carl.kill()
    team.client_keys("carl", roots=())
    carl = team.local("carl", config=f'[paths]\n"{Path(shot).parent}" = "{other}"\n')
    told: list[ServerError] = []

    def is_refused() -> bool:
        with pytest.raises(ServerError) as caught:
            submit(carl, shot, tmp_path / "o.####.exr", identity)
        told.append(caught.value)
        return caught.value.code == "forbidden_path"

    until(is_refused)  # a changed list is read within a second
    assert "faceplate keys allow carl" in told[-1].hint


def test_single_frames_are_on_record_where_they_are_done(
    team: Team, anna: Running, shot: str, identity: Path, tmp_path: Path
) -> None:
    out = tmp_path / "single" / "o.####.exr"
    out.parent.mkdir()
    with anna.client() as client:
        people = (wire.Assignment(str(identity)),)
        for frame in (1001, 1002):
            plate, output = wire.FileRef(shot, frame), wire.FileRef(str(out), frame)
            job = client.submit_frame(frame=frame, plate=plate, output=output, assignments=people)
            assert isinstance(client.result(job, 30), wire.FrameResult)
    assert sorted(outputs(out.parent)) == ["o.1001.exr", "o.1002.exr"]
    ledger = verify_ledger(team.base / "t" / "log.ledger.jsonl")
    lines = [entry for entry in ledger.entries if entry.get("output") == str(out)]
    assert [(entry["event"], entry["user"], entry["plate"]) for entry in lines] == [("job started", "anna", shot)]


def test_what_one_job_read_another_may_write(anna: Running, shot: str, identity: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1" / "o.####.exr", tmp_path / "2" / "o.####.exr"
    submit(anna, shot, first, identity)
    once = outputs(first.parent)
    submit(anna, str(first), second, identity)
    chained = outputs(second.parent)
    submit(anna, shot, first, identity, settings={"strength": ((0, 0.5),)})
    assert {name for name, data in outputs(first.parent).items() if data != once[name]} == set(once)
    submit(anna, shot, first, identity)
    assert outputs(first.parent) == once
    assert dict(submit(anna, str(first), second, identity).counts) == {"kept": 6}  # type: ignore[union-attr]
    assert outputs(second.parent) == chained


def test_status_says_where_the_work_is_done(team: Team, anna: Running, cli: Cli) -> None:
    with anna.client() as client:
        (device,) = client.welcome.devices
        assert device.name == f"cpu at {team.address}"
        assert client.status().devices == (device,)
    shown = cli("status", "--folder", anna.place.folder)
    assert f"cpu at {team.address}" in shown.out


def test_one_client_sees_nothing_of_another(team: Team, anna: Running, until: Until) -> None:
    dora = team.local("dora")
    with anna.client() as client, anna.ring(2, HD.nbytes) as ring, dora.client() as other:
        line = client.submit_frame(**null_frame(ring, HD, noise(HD)), priority="batch")  # type: ignore[arg-type]
        assert other.status().jobs == ()
        client.result(line, 30)
    peer = Stranger(team, team.client_keys("dora"))
    peer.hello()
    peer.say(wire.Status("s"))
    assert peer.wire(wire.StatusReply).jobs == ()
    known = sorted((team.spool / "anna" / "contents").glob("[!.]*")) if (team.spool / "anna").exists() else []
    files = [[f"/x/{n}", path.name, path.stat().st_size, "input"] for n, path in enumerate(known)]
    peer.job(files=files)
    want = peer.until("want")
    assert want["hashes"] == sorted({path.name for path in known})  # what anna sent is not there for others
    peer.close()
    dora.kill()


# Who is let in


def error_of(running: Running) -> ServerError:
    with running.client() as client, running.ring(1, SMALL.nbytes) as ring:
        job = client.submit_frame(**null_frame(ring, SMALL, bytes(SMALL.nbytes)))  # type: ignore[arg-type]
        with pytest.raises(ServerError) as caught:
            client.result(job, 30)
        assert ring.state(0) is State.DONE
        assert client.welcome.devices == ()
    running.kill()
    return caught.value


def test_a_key_that_is_not_on_the_list(team: Team) -> None:
    eve = team.local("eve", allowed=False)
    error = error_of(eve)
    assert error.code == "resource"
    assert "does not let this machine in" in str(error)
    assert KeyFolder(team.base / "keys-eve").own().public.hex() in error.hint
    assert "turned away 127.0.0.1" in team.server.log()
    assert "client eve" not in team.server.log()


def test_another_server_than_the_one_that_is_meant(team: Team) -> None:
    error = error_of(team.local("fred", key=KeyFolder(team.base / "keys-nobody").own().public.hex()))
    assert "is not the team server that is meant" in str(error)
    assert "upstream_key" in error.hint


def test_a_team_server_that_is_not_there(team: Team) -> None:
    error = error_of(team.local("gina", address=f"tcp://{HOST}:{free_port()}"))
    assert "cannot be reached" in str(error)
    assert "check that it runs" in error.hint


def test_a_client_that_is_taken_off_the_list_is_out(team: Team, until: Until) -> None:
    hugo = team.local("hugo")
    team.keys.remove("hugo")
    with hugo.client() as client:
        until(lambda: client.status().devices == ())
    error = error_of(hugo)  # the same words, whether the open connection was ended or the next one turned away
    assert "does not let this machine in" in str(error)
    assert "faceplate keys allow" in error.hint


def test_a_client_that_is_changed_on_the_list_connects_again(team: Team, until: Until) -> None:
    olga = team.local("olga")
    team.client_keys("olga", roots=("/srv/show",))
    until(lambda: team.server.log().count("client olga connected") == 2)
    with olga.client() as client, olga.ring(1, SMALL.nbytes) as ring:
        job = client.submit_frame(**null_frame(ring, SMALL, noise(SMALL)))  # type: ignore[arg-type]
        assert isinstance(client.result(job, 30), wire.FrameResult)
    assert "does not let this machine in" not in olga.log()
    olga.kill()


def test_plain_connections_and_other_releases_get_nothing(team: Team) -> None:
    with zmq.Context() as context, context.socket(zmq.DEALER) as plain:
        plain.linger = 0
        plain.connect(team.address)
        plain.send(wire.encode(wire.Hello(1, 1, "x", "1"), 1))
        assert not plain.poll(500)
    peer = Stranger(team, team.client_keys("ivan"))
    peer.say(wire.Hello(1, 1, "ivan", "0.0.1"))
    error = peer.wire(wire.Error)
    assert (error.code, error.found) == ("unsupported_version", "0.0.1")
    peer.close()


class Stranger:
    """A client of the link that may say anything."""

    def __init__(self, team: Team, keys: KeyFolder) -> None:
        self.context = zmq.Context()
        self.dealer = self.context.socket(zmq.DEALER)
        self.dealer.linger = 0
        own = keys.own()
        self.dealer.curve_publickey, self.dealer.curve_secretkey = z85.encode(own.public), z85.encode(own.secret)
        self.dealer.curve_serverkey = z85.encode(team.keys.own().public)
        self.dealer.connect(team.address)

    def say(self, message: object) -> None:
        self.dealer.send_multipart(link.encode("say", None, wire.encode(message)))

    def hello(self) -> wire.Welcome:
        from faceplate import __version__

        self.say(wire.Hello(1, wire.PROTOCOL_MAX, "stranger", __version__))
        return self.wire(wire.Welcome)

    def receive(self) -> tuple[str, dict[str, object], bytes]:
        assert self.dealer.poll(5000), "no answer"
        return link.decode(self.dealer.recv_multipart())

    def until(self, kind: str) -> dict[str, object]:
        while True:
            got, head, _ = self.receive()
            if got == kind:
                return head

    def wire(self, kind: type) -> object:
        while True:
            got, _, body = self.receive()
            if got == "say" and isinstance(message := wire.decode(body), kind):
                return message

    def job(self, message: object = None, **head: object) -> None:
        from faceplate.colour.spaces import ColourConfig

        if message is None:
            message = wire.SubmitFrame("j", 1, wire.FileRef(SENT + "/x/p.exr"), wire.FileRef(SENT + "/x/o.exr"), ())
        fields = {"files": [], "gone": [], "listings": [], "shared": [], "frames": [], "rooms": []}
        fields |= {"id": "j", "colour": ColourConfig.open().fingerprint}
        self.dealer.send_multipart(link.encode("job", {**fields, **head}, wire.encode(message)))

    def close(self) -> None:
        self.dealer.close()
        self.context.term()


@pytest.mark.parametrize(
    "path", ["/etc/passwd", SENT + "/../../../etc/passwd", "/tmp", SENT + "/x/../../y", "relative", "{spool}/anna"]
)
def test_no_path_leads_outside(team: Team, path: str) -> None:
    peer = Stranger(team, team.client_keys("jack"))
    assert peer.hello().roots == ()
    path = path.format(spool=team.spool)
    for plate, output in ((path, SENT + "/o.exr"), (SENT + "/p.exr", path)):
        peer.job(wire.SubmitFrame("j", 1, wire.FileRef(plate), wire.FileRef(output), ()))
        assert peer.wire(wire.Error).code == "forbidden_path"
    peer.close()


def test_a_client_that_breaks_the_rules_is_ended_and_the_others_are_not(team: Team, anna: Running) -> None:
    frames = [
        [b"{}", b""],
        [b"[" * 100_000, b""],
        link.encode("want", {"id": "j", "hashes": []}),
        link.encode("ack", {"bytes": 1}),
        [json.dumps({"k": "open", "stream": 1}).encode(), b""],
        [b"x"],
        [b"x", b"y", b"z"],
    ]
    for parts in frames:
        peer = Stranger(team, team.client_keys("kate"))
        peer.hello()
        peer.dealer.send_multipart(parts)
        assert peer.wire(wire.Error).code == "malformed"
        peer.close()
    peer = Stranger(team, team.client_keys("kate"))
    peer.hello()
    peer.job(frames=[[0, 1 << 40, ""]])
    assert peer.wire(wire.Error).code == "limit"
    peer.job(files=[["/x/a", "0" * 64, 1 << 50, "input"]])
    assert peer.wire(wire.Error).code == "limit"
    bomb = {"stream": 1, "job": "j", "what": "blob", "size": 10, "stride": 1, "hash": "0" * 64}
    peer.job(files=[["/x/a", "0" * 64, 10, "input"]])
    peer.dealer.send_multipart(link.encode("open", {**bomb, "path": "", "place": 0, "header": ""}))
    peer.dealer.send_multipart(link.encode("data", {"stream": 1, "code": 1, "size": 1 << 30}, b"x"))
    assert peer.wire(wire.Error).code == "malformed"
    peer.close()
    with anna.client() as client, anna.ring(1, SMALL.nbytes) as ring:
        job = client.submit_frame(**null_frame(ring, SMALL, noise(SMALL)))  # type: ignore[arg-type]
        assert isinstance(client.result(job, 20), wire.FrameResult)


# The line


@pytest.fixture
def line(team: Team) -> Iterator[Line]:
    one = Line((HOST, team.port))
    yield one
    one.close()


def test_a_line_that_is_cut_in_mid_frame(team: Team, line: Line, until: Until) -> None:
    lisa = team.local("lisa", address=line.address)
    pixels = noise(HD)
    line.rate = 20e6
    with lisa.client() as client, lisa.ring(2, HD.nbytes) as ring:
        before = line.passed
        job = client.submit_frame(**null_frame(ring, HD, pixels))  # type: ignore[arg-type]
        until(lambda: line.passed - before > 4_000_000)
        line.cut()
        line.rate = 0
        end = client.result(job, 30)
        assert isinstance(end, wire.FrameResult)
        _, result = ring.result(end.output)  # type: ignore[arg-type]
        assert bytes(result) == pixels
        ring.release(0)
        line.rate = 20e6
        job = client.submit_frame(**null_frame(ring, HD, pixels))  # type: ignore[arg-type]
        for _ in range(2):
            aim = line.passed + 4_000_000
            until(lambda aim=aim: line.passed > aim)  # type: ignore[misc]
            line.cut()
        with pytest.raises(ServerError, match="cut twice") as caught:
            client.result(job, 30)
        assert caught.value.code == "resource"
        assert ring.state(0) is State.DONE
        assert ring.header(0) is None  # no half result
    assert "sent again" in lisa.log()
    lisa.kill()


def test_a_slow_line_stalls_nobody(team: Team, line: Line) -> None:
    mona = team.local("mona", address=line.address)
    pixels = noise(HD)
    line.rate = 2e6  # the frame alone takes fifteen seconds
    with mona.client("batch") as batch, mona.client("host") as host, mona.ring(4, HD.nbytes) as ring:
        big = batch.submit_frame(**null_frame(ring, HD, pixels, priority="batch", deadline_s=6.0))  # type: ignore[arg-type]
        started = time.monotonic()
        time.sleep(1.0)
        pings = []
        for _ in range(20):
            begun = time.monotonic()
            host.ping()
            pings.append(time.monotonic() - begun)
        assert sorted(pings)[10] < 0.1
        begun = time.monotonic()
        small = host.submit_frame(**null_frame(ring, SMALL, noise(SMALL)))  # type: ignore[arg-type]
        assert isinstance(host.result(small, 20), wire.FrameResult)
        assert time.monotonic() - begun < 3.0  # it overtakes: what is on its way is some tenths of a second
        with pytest.raises(ServerError) as caught:
            batch.result(big, 20)
        assert caught.value.code == "deadline"
        assert 5.9 < time.monotonic() - started < 7.5
        memory = host.status().memory_mb
        again = batch.submit_frame(**null_frame(ring, HD, pixels, priority="batch"))  # type: ignore[arg-type]
        time.sleep(1.0)
        begun = time.monotonic()
        batch.cancel(again)
        assert isinstance(batch.result(again, 10), wire.Cancelled)
        assert time.monotonic() - begun < 1.0
        assert host.status().memory_mb < memory + 80
    mona.kill()


def test_a_batch_goes_on_after_the_team_server_died(
    local: Path,  # noqa: F811
    shot: str,
    identity: Path,
    tmp_path: Path,
    until: Until,
) -> None:
    out = tmp_path / "o.####.exr"
    with team_of() as team:
        nora = team.local("nora")
        ended: list[wire.End] = []
        thread = threading.Thread(target=lambda: ended.append(submit(nora, shot, out, identity)))
        thread.start()
        end = time.monotonic() + 60
        while not list(tmp_path.glob("o.*.exr")):
            assert time.monotonic() < end
            time.sleep(0.005)
        team.server.kill()
        team.start()
        thread.join(90)
        assert ended, nora.log()
        assert outputs(tmp_path) == outputs(local)
        counts = dict(ended[0].counts)  # type: ignore[union-attr]
        assert sum(counts.values()) == 6
        team.server.kill()
        with pytest.raises(ServerError, match="cannot be reached"):
            submit(nora, shot, tmp_path / "p.####.exr", identity)
        team.start()
        wait_ready(team.server)
        with nora.client() as client:
            until(lambda: client.status().devices != ())
        assert dict(submit(nora, shot, out, identity).counts) == {"kept": 6}  # type: ignore[union-attr]
        assert leftovers(tmp_path) == []


def test_a_range_is_cancelled_within_a_frame(
    team: Team, anna: Running, shot: str, identity: Path, tmp_path: Path
) -> None:
    for number in range(1007, 1037):
        shutil.copyfile(shot.replace("####", str(1001 + number % 6)), shot.replace("####", str(number)))
    out = tmp_path / "o.####.exr"
    with anna.client() as client:
        people = (wire.Assignment(str(identity)),)
        job = client.submit_range(plate=shot, output=str(out), frames=None, assignments=people)
        for event in client.events(job, 60):
            if isinstance(event, wire.Partial):
                client.cancel(job)
            last = event
    assert isinstance(last, wire.Cancelled)
    assert len(outputs(tmp_path)) == last.finished < 36
    end = submit(anna, shot, out, identity)
    assert dict(end.counts) == {"kept": last.finished, "done": 36 - last.finished}  # type: ignore[union-attr]
