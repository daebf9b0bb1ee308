"""What the votes say: analysis, statistics, the report, and exports."""
