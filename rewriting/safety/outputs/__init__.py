"""What a rewrite must not say."""
