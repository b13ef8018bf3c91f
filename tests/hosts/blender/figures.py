"""What Blender's host layer costs, by version: printed, never compared with a limit, since machines differ.

    python -m tests.hosts.blender.figures [VERSION]... [--frames 10] [--no-contract] [--json]

Versions are those of `environments.py` that are there, "4.2" and so on; without any the oldest and the newest. By
version and size (HD, UHD), ms of wall time as median and best (a busy machine's median says little):

    live NULL|MESH           a live frame in the compositor: host (pixels in and out), transport, server
    plate_shown, result_shown  CPU time in which the sequencer reads, converts and puts together one frame of a strip
    bake_fps, bake_cpu       frames a second that Blender renders of a strip that has to be baked; CPU time of one
    apply                    a frame of Apply, mesh engine: analysis, swap, files
    refresh_nothing          Refresh of a result that needs nothing; _one_frame where a file of it was deleted
    contract                 checks of `tests/contract/hosts` that passed, were left out, failed

Live frames of the mesh engine find the face anew, as long as nobody has found the faces of the shot.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faceplate.cli.main import main as faceplate
from tests.contract.hosts.checks import CHECKS
from tests.contract.hosts.conftest import PLATE
from tests.hosts.blender.conftest import ROOT, Blender
from tests.hosts.blender.environments import VERSIONS, ready
from tests.hosts.blender.test_contract import bench_of
from tests.integration.conftest import person_photos
from tests.integration.server.conftest import Running, running
from tests.support.plates import moving_plate

sys.path.insert(0, str(ROOT / "host_plugins"))

SIZES = {"HD": (1920, 1080), "UHD": (3840, 2160)}
ENGINES = ("null", "mesh")
PLATES = 4


def unpacked(folder: Path) -> Path:
    """The extension as it is installed."""
    from faceplate_install.archive import blender_zip

    zipfile.ZipFile(blender_zip(folder / "zip")).extractall(folder / "extension")
    return folder / "extension"


def measure(
    blender: Blender, server: Running, plates: dict[str, Path], identity: Path, frames: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """All times of one version as they are measured: (size and what, figures)."""
    for name, folder in plates.items():
        words: dict[str, Any] = {"folder": folder, "server": server.place.folder, "identity": identity}
        for engine in ENGINES:
            with _room() as out:
                told = blender.run(
                    "measuring", "live_frames", timeout=900, **words, out=out, engine=engine, frames=frames
                )
            yield f"{name} live {engine}", told
        with _room() as out:
            told = blender.run("measuring", "strips", timeout=900, **words, out=out)
        yield f"{name} strip", told


def contract(blender: Blender, server: Running, folder: Path, identity: Path) -> dict[str, Any]:
    """How the host contract went."""
    original = PLATE.write(folder / "original")
    reference = str(folder / "reference" / "o.####.exr")
    words = ["apply", original, "--identity", str(identity), "-o", reference, "--device", "cpu"]
    if faceplate([*words, "--input-space", "lin_ap1_scene"]) != 0:
        raise SystemExit("the reference of the contract cannot be made")
    work = folder / f"contract {blender.version}"
    work.mkdir()
    told = blender.run(
        "contract", "checks", enable=False, paths=(ROOT / "host_plugins", ROOT), timeout=1200, names=list(CHECKS),
        folder=work, bench=bench_of(server, False, original=original, reference=reference, identity=str(identity)),
    )  # fmt: skip
    said = {name: text for name, (text, _) in told.items()}
    out = {name: text for name, text in said.items() if text.startswith("left out")}
    failed = {name: text.splitlines()[-1] for name, text in said.items() if text and name not in out}
    return {"passed": len(said) - len(out) - len(failed), "left out": sorted(out), "failed": failed}


@contextmanager
def _room() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fp-") as folder:
        yield Path(folder)


def show(version: str, what: str, figures: dict[str, Any], as_json: bool) -> None:
    """Print one kind of figures."""
    if as_json:
        print(json.dumps({"blender": version, "what": what, **figures}), flush=True)
        return
    words = []
    for name, value in figures.items():
        both = isinstance(value, list) and len(value) == 2
        words.append(f"{name} {value[0]} (best {value[1]})" if both else f"{name} {value}")
    print(f"Blender {version} {what}: {', '.join(words)}", flush=True)


def main() -> int:
    """Parse the command line and measure; 1 where a check of the contract failed, 2 where a version is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", default=[VERSIONS[0].name, VERSIONS[-1].name])
    parser.add_argument("--frames", type=int, default=10, help="live frames of each kind (default: 10)")
    parser.add_argument("--no-contract", action="store_true", help="times alone")
    parser.add_argument("--json", action="store_true", help="one JSON object a version")
    options = parser.parse_args()
    chosen = {version.name: ready(version) for version in VERSIONS if version.name in options.versions}
    if missing := [name for name in options.versions if chosen.get(name) is None]:
        print(f"no bpy {', '.join(missing)}: python3 tests/hosts/blender/environments.py makes it", file=sys.stderr)
        return 2
    failed = False
    with _room() as folder, running() as server:
        identity = folder / "person.fpid"
        faceplate(["identity", "make", "person", *map(str, person_photos()), "-o", str(identity)])
        extension = unpacked(folder)
        plates = {name: folder / name for name in SIZES}
        for name, (width, height) in SIZES.items():
            moving_plate(width, height, PLATES, face_width_px=width / 6, motion="linear").write(plates[name])
        for version, python in chosen.items():
            assert python is not None
            home = folder / f"blender {version}"
            home.mkdir()
            blender = Blender(version, python, extension, home)
            for what, figures in measure(blender, server, plates, identity, options.frames):
                show(version, what, figures, options.json)
            if not options.no_contract:
                went = contract(blender, server, folder, identity)
                failed = failed or bool(went["failed"])
                show(version, "contract", went, options.json)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
