"""What `train.py grpo` is made of: actions, rewards, TRL's settings and trainers, warm start."""
