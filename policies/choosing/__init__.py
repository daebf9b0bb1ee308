"""An agent that chooses: where to edit a reply, and which kind sentence of others to say there."""
