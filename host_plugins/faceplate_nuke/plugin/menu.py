# SPDX-License-Identifier: Apache-2.0
"""Loaded by a Nuke with a window, after init.py: the node, the menu, the labels."""

try:
    from faceplate_nuke import buttons

    buttons.install()
except Exception as error:  # a fault here must never keep Nuke from starting
    import traceback

    print(f"Faceplate could not be loaded: {type(error).__name__}: {error}")
    print(traceback.format_exc())
    print("Faceplate: groups in scripts still show their results. Reinstall it with: faceplate install nuke")
