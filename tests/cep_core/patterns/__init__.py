"""What all pattern files have in common."""
