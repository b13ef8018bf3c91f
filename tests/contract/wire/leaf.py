"""What a host does with the client, in the host's own Python: run by `test_pythons`, standard library only.

leaf.py PARENT PACKAGE CONNECTION GOLDEN: imports PACKAGE from PARENT, talks to the server of the connection file's
folder, and prints what it saw as JSON.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

parent, package, folder, golden = sys.argv[1:]
sys.path.insert(0, parent)


def part(name: str) -> Any:
    return importlib.import_module(package + "." + name)


wire, slots, client, connection, errors = map(part, ("wire", "slots", "client", "connection", "errors"))
seen: "dict[str, Any]" = {"python": ".".join(map(str, sys.version_info[:2])), "package": client.__name__}

for path in sorted(Path(golden).rglob("*.json")):
    data = path.read_bytes()
    version = json.loads(data)["v"]
    assert wire.encode(wire.decode(data), version) == data, path
    try:
        wire.decode(data.replace(b'"v":%d' % version, b'"v":3'))
    except wire.UnsupportedVersion:
        seen["golden"] = seen.get("golden", 0) + 1

place = connection.Place(Path(folder))
with client.Client(lambda: connection.find(place), "leaf", client.Timeouts(request_s=10)) as server:
    seen["instance"] = server.welcome.instance
    seen["ready"] = server.ping().ready
    jane = (wire.Assignment("/id/jane.fpid"),)
    header = slots.FrameHeader(640, 360, dtype=slots.FrameType.HALF, frame=1001, colour_space="ACEScg")
    plate = bytes(range(256)) * (header.nbytes // 256)
    with slots.Ring.create(2, header.nbytes, Path(folder)) as ring:
        for _ in range(3):
            sent, room = ring.put(header, plate), ring.offer(ring.acquire())
            end = server.result(server.submit_frame(frame=1001, plate=sent, output=room, assignments=jane), 20)
            got, pixels = ring.result(end.output)
            assert bytes(pixels) == bytes(255 - code for code in plate), "the frame came back wrong"
            assert (got.width, got.frame, got.colour_space) == (640, 1001, "out")
            del pixels
            ring.release(sent.slot)
            ring.release(room.slot)
        try:
            ring.result(end.output)
        except errors.RingWrongState as error:
            seen["hint"] = error.hint
        server.release(ring)
    events = server.events(server.submit_range(plate="/p.#.exr", output="/o.#.exr", frames=None, assignments=jane))
    seen["events"] = [type(event).__name__ for event in events]
    try:
        server.submit_range(plate="/p", output="/o", frames=None, assignments=jane, engine="none")
    except errors.ServerError as error:
        seen["refused"] = error.code
    long = {"strength": tuple((frame, 0.5) for frame in range(20000))}
    job = server.submit_range(plate="/p", output="/o", frames=None, assignments=jane, settings=long)
    seen["long"] = type(server.result(job)).__name__
seen["rings"] = [path.name for path in Path(folder).glob("*.ring")]
seen["foreign"] = sorted({"numpy", "zmq", "site"} & set(sys.modules))
print(json.dumps(seen))
