"""Manifest, lock and runner: batches that resume."""
