"""PARTNER: policies that rewrite a response sentence by sentence, each edit at a position."""
