"""Measures: a line of a table is defined in one place, with everything that is said or done of it.

- measure: what a measure is, and the figures and intervals of a table of them
- rewrites: the measures of `evaluate.py rewrites`
- responses: the measures of `evaluate.py responses`
- diversity: how much a rewrite changed, how varied texts are
"""
