"""How language models are read: keys and values kept and shared, sampling, the output layer."""
