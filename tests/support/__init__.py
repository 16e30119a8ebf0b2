"""What several tests use: lakes, sources, drivers that are killed, a browser."""
