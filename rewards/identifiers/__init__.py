"""Identifiers: who says how strongly a response shows each mechanism of empathy, and where."""
