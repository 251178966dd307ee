"""A real language model and 1,000 noisy labels: when does PPO start to hack what was learnt, and how?"""
