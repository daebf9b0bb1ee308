"""A language model as a judge of replies: it compares two, grades one, or says how likely one is.

rubric       what the judge is asked: a small TOML file
question     one filled-in question, and the interface of everything that answers questions
local        a causal language model that runs here, read by the likelihoods of its answers
endpoint     a model behind an OpenAI-compatible server
likelihood   how much likelier a post makes a reply
methods      from answers to numbers: compare, grade, likelihood
memory       every question is asked once

The reward `judge` is rewards/terms/judge.py, the identifier `judge:MODEL`
rewards/identifiers/judged.py.
"""
