"""The report of an evaluation: one HTML file that needs no network, with plots and rewrites."""
