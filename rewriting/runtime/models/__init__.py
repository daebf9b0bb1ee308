"""Models by name: where they come from, how they are installed and loaded."""
