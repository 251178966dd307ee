"""Measuring the gap between proxy and gold. This room knows no file and no recipe: it takes numbers."""
