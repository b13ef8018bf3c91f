"""Engines that replace a face, and the comp that puts the change into the plate."""
