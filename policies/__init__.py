"""Who acts: policies that rewrite responses, and the loops that train them."""
