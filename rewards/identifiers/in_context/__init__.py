"""An identifier in context: a gate asks whether a reply answers this post."""
