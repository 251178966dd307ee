"""From judgements to a reward model: read, split, fit, score."""
