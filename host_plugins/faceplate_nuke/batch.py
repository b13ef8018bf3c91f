# SPDX-License-Identifier: Apache-2.0
"""Process all Faceplate groups of a script without a window.

    nuke -t .../faceplate_nuke/batch.py SCRIPT.nk [--frames 1001-1100] [--group NAME]... [--save FILE.nk] [--json]

Exit code: 0 done, 1 frames or groups failed, 2 bad input, 3 no server, 130 stopped. The script is changed on disk only
where --save says so; a farm then renders that file without a server.
"""

import os
import sys

if __name__ != "faceplate_nuke.batch":
    # what Nuke runs has no __file__ in every version
    _script = os.path.abspath(globals().get("__file__") or sys.argv[0])
    sys.path.insert(0, os.path.dirname(os.path.dirname(_script)))
    from faceplate_nuke import headless

    headless.main(_script)
