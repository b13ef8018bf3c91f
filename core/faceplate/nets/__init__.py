"""Adapters of nets that a user brings: torch tensors in, torch tensors out, on the net's device."""
