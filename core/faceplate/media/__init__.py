"""Files to and from image values: EXR, other images, sequences."""
