"""Adapters of nets: torch tensors in, torch tensors out, on the net's device."""
