"""The rules of the gate: phrases, however they are spelt, and other languages."""
