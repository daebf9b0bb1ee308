"""Terms that pay for levels of empathy, as an identifier calls them."""
