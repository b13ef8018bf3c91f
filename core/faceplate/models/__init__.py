"""Cards, store and sessions of the nets."""
