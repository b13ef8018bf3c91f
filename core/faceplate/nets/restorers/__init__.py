"""Adapters of restorers: a face in, the same face with more detail out."""
