# empathic-rewriting: this line says whose the package is (rewriting/distribution.py reads it).
