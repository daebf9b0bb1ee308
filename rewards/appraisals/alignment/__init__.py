"""Alignment: which appraisals of a reply meet those of a post."""
