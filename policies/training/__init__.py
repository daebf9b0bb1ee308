"""Reinforcement learning of policies: rollouts, advantages, losses, what people are shown of them.

reinforce   the loop for edit policies (PARTNER)
ppo         the loop for generators (EmpRL)
"""
