"""May one optimise against a reward model, and how far?"""
