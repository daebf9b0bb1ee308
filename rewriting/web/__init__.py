"""What every server here needs: patient connections, known names, headers against inline code."""
