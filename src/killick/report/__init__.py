"""Showing a run from its folder alone: figures, one page, a comparison of two runs. Nothing here trains anything."""
