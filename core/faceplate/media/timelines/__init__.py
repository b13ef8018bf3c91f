"""Edited timelines: which frames of which media they show, and the same timelines with other media in place."""
