"""Adapters of swappers: crops of the plate and what says who it becomes in, the new face and its matte out."""
