"""A study: its plan, its pairs and who judges them when, and the votes."""
