"""Variants or samples of a person's own: the best of n, and what choosing among fewer would have given."""
