"""Recognisers: aligned crops in, vectors that tell people apart out; and converters between their spaces."""
