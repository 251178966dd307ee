"""4 prompts x 8 answers: how close do REINFORCE and PPO come to the exact optimum?"""
