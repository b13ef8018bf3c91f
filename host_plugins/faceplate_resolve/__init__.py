"""Faceplate in DaVinci Resolve Studio, 18.5 and later: results as takes or on the track above; batches.

`host.py` is the host; `items.py`, `notes.py`, `pool.py`, `placing.py` and `rendering.py` work on the objects that it
gives them, `batch.py` on timelines, `edition.py` and `connect.py` on the application. The rest touches nothing of
Resolve. `menu/` has what Workspace > Scripts lists; `python -m faceplate_resolve` is the way in from outside.
"""
