"""The commands of `rewriting`: a file each."""
