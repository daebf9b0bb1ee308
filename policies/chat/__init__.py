"""Chat models as policies: how one is asked for a rewrite, and what a trained one is."""
