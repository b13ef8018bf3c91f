"""`faceplate bench --server`: what the server costs beside the work itself, as ratios measured in one run."""
