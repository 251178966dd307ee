"""Optimising against a proxy. Loops yield a record per iteration; the caller scores, logs, saves and stops."""
