"""What a language model is used for: roles on one backbone, log-probabilities, KL, LoRA."""
