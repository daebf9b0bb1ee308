"""What several recipes, tables or commands share. It imports none of them."""
