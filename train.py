"""`accelerate launch train.py RECIPE [--config FILE.yaml] [--field value …]`."""

from recipes.entry import run_training

if __name__ == "__main__":
    run_training()
