"""A person's own language model, optimised on a leash: proxy, gold and KL on held-out prompts."""
