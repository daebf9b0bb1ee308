"""What a command is asked for: read from flags and files, and checked before models are loaded."""
