"""Landmark nets: crops or five points in, 68 or 106 points out."""
