# SPDX-License-Identifier: Apache-2.0
"""Loaded by every Nuke, also in a terminal and on a farm: makes the package importable, and touches nothing else."""

try:
    import os
    import sys

    _here = os.path.dirname(os.path.abspath(__file__))
    if _here not in sys.path:
        sys.path.append(_here)
except Exception as error:  # a fault here must never keep Nuke from starting
    print(f"Faceplate could not be loaded: {type(error).__name__}: {error}")
