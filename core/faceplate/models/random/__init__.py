"""Nets of the true signature with random weights: for tests, and for `faceplate bench --nets random`."""
