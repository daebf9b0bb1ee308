"""The identifier `grounded`: readings of sentences, and rules that make levels of them."""
