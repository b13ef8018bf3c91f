# SPDX-License-Identifier: Apache-2.0
"""Faceplate in Nuke 14 and later: a group that sends its input to the Faceplate server and reads the result.

What imports what: `application.py` and `host.py` alone import `nuke`. `api.py` has the types of what they give to the
others; `knobs.py`, `graph.py`, `colours.py`, `files.py`, `placing.py`, `rendering.py`, `scratch.py` work on nodes and
values that they are given; `work.py` makes an action of a group, `servers.py` says with which server; `buttons.py` is
what the group's buttons and the menu do; `headless.py` does a script without a window, `batch.py` is the way in.
`plugin/` holds the two loaders: in an installed plug-in they lie beside this package, in the folder that is on Nuke's
path. `Faceplate.nk` is the group. A script that has it needs none of this to open or to render.
"""
