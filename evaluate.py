"""`python evaluate.py TABLE [--field value …] --json OUT.json`"""

from recipes.entry import run_evaluation

if __name__ == "__main__":
    run_evaluation()
