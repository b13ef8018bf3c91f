"""Faceplate in DaVinci Resolve Studio, 18.5 and later: results as takes or on the track above; batches.

`host.py` alone holds the application; `items.py`, `pool.py`, `placing.py` and `rendering.py` work on the objects that
it gives them. `menu/` has what Workspace > Scripts lists; `python -m faceplate_resolve` is the way in from outside.
"""
