"""Reinforcement learning of policies: rollouts, advantages, losses, warnings.

reinforce   the loop for edit policies (PARTNER)
ppo         the loop for generators (EmpRL)
"""
