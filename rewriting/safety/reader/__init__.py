"""The learned reader of crises, beside the rules."""
