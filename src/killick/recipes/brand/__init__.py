"""A chat model and a reviewer: what does a reward head learn from few pairs, and what does PPO trade?"""
