"""Learning the proxy from preferences. A reward model splits into `encode` (done once) and `score` (trained)."""
