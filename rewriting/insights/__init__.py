"""What a large scored file says: empathy over time, by group, with outcomes."""
