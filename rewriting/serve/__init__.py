"""Rewriting, scoring and feedback over HTTP, and a page to try them. Knows no model."""
