"""`rewriting ab`: the commands of a human study."""
