"""Adapters of mattes: a crop in, where its face is and what covers it out."""
