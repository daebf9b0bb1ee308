"""What is good: the reward protocol, its terms, and the models behind them."""
