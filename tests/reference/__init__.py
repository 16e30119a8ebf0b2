"""The slow, obvious version of each kind."""
