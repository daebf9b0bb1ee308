"""Appraisals (ALOE): what people make of what happened, and which words of a reply meet it."""
