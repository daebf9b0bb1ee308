"""Reading one sentence as an answer to one post: does it fit, what kind of empathy is it?"""
