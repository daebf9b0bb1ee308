"""`rewriting push`: a trained policy goes to the hub."""
