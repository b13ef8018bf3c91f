#!/usr/bin/env python3
"""Build the plug-ins of the hosts, standard library alone; the same sources give the same bytes.

python3 installers/build.py blender [-o DIR]    Blender's extension, one zip for all versions and systems
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "host_plugins"))

from faceplate_install.archive import NotBuildable, blender_zip  # noqa: E402

BUILDERS = {"blender": blender_zip}


def main() -> int:
    """Parse the command line and build; 0 when it is there, 2 when it cannot be built."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host", choices=sorted(BUILDERS))
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="folder (default: dist)")
    options = parser.parse_args()
    try:
        print(BUILDERS[options.host](options.output))
    except (NotBuildable, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
