"""What an analyst does before the first run."""
