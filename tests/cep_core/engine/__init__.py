"""What holds for every kind."""
