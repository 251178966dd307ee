"""Exercises that a teacher hands out: folders to be written anywhere, and killick's own code as their solution."""
