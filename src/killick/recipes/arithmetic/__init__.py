"""The InstructGPT recipe in miniature: what does PPO do to a reward that counts digits?"""
