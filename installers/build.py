#!/usr/bin/env python3
"""Build what is handed on; the same sources give the same bytes.

python3 installers/build.py blender     Blender's extension, one zip for all versions and systems
python3 installers/build.py nuke        Nuke's plug-in: a zip to unpack into a folder on NUKE_PATH
python3 installers/build.py resolve     Resolve's scripts: a zip to unpack into its Fusion folder
python3 installers/build.py client      the leaf client as a wheel, Python 3.9 and later
python3 installers/build.py server      the server as a bundle with locked requirements, for CPU and CUDA
python3 installers/build.py all         all of them, with SHA256SUMS

The plug-ins need the standard library alone, any Python 3.11 or later builds them. client and server need hatchling,
server also Faceplate's environment: `.venv/bin/pip install hatchling`, then `.venv/bin/python installers/build.py all`.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "host_plugins"), str(ROOT / "installers")]

import wheels  # noqa: E402

from faceplate_client import __version__  # noqa: E402
from faceplate_install.archive import NotBuildable, blender_zip, nuke_zip, resolve_zip, write_zip  # noqa: E402


def server_bundle(out: Path) -> Path:
    """The server's bundle: wheel, requirements, installer, checksums."""
    source = ROOT / "installers"
    with tempfile.TemporaryDirectory() as name:
        wheel = wheels.faceplate_wheel(Path(name))
        files = {wheel.name: wheel.read_bytes()}
    for kind in (wheels.CPU, wheels.CUDA):
        files[f"requirements-{kind}.txt"] = "".join(f"{line}\n" for line in wheels.locked(kind)).encode()
    files["bootstrap.py"] = (source / "bootstrap.py").read_bytes()
    files["install.py"] = (source / "server" / "install.py").read_bytes()
    files["README.md"] = (source / "server" / "BUNDLE.md").read_bytes()
    files["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files["SHA256SUMS"] = checksums(files)
    folder = f"faceplate-server-{__version__}"
    return write_zip({f"{folder}/{name}": data for name, data in files.items()}, out / f"{folder}.zip")


def with_readme(build: Callable[[Path], Path], host: str, inside: str) -> Callable[[Path], Path]:
    """A plug-in's archive with its README and the sheet for testers, for those who get nothing else."""

    def built(out: Path) -> Path:
        with tempfile.TemporaryDirectory() as name:
            bare = build(Path(name))
            with zipfile.ZipFile(bare) as archive:
                files = {entry: archive.read(entry) for entry in archive.namelist()}
        files[f"{inside}/README.md"] = (ROOT / "installers" / host / "README.md").read_bytes()
        files[f"{inside}/TESTING.md"] = (ROOT / "host_plugins" / f"faceplate_{host}" / "TESTING.md").read_bytes()
        return write_zip(files, out / bare.name)

    return built


def checksums(files: dict[str, bytes]) -> bytes:
    """As `sha256sum -c` reads them."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())).encode()


BUILDERS: dict[str, Callable[[Path], Path]] = {
    "blender": blender_zip,
    "nuke": with_readme(nuke_zip, "nuke", "faceplate"),
    "resolve": with_readme(resolve_zip, "resolve", "Faceplate"),
    "client": wheels.client_wheel,
    "server": server_bundle,
}


def main() -> int:
    """Parse the command line and build; 0 when it is there, 2 when it cannot be built."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*BUILDERS, "all"))
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="folder (default: dist)")
    options = parser.parse_args()
    try:
        built = [BUILDERS[name](options.output) for name in (BUILDERS if options.what == "all" else [options.what])]
        if options.what == "all":
            sums = options.output / "SHA256SUMS"
            sums.write_bytes(checksums({path.name: path.read_bytes() for path in built}))
            built.append(sums)
    except (NotBuildable, wheels.NotLocked, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path in built:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
