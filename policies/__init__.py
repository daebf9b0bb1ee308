# empathic-rewriting: this line says whose the package is (rewriting/distribution.py reads it).
"""Who acts: policies that rewrite responses, and the loops that train them."""
