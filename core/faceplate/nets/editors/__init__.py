"""Adapters of editors: the same person, otherwise: older, looking elsewhere, with the plate's expression."""
