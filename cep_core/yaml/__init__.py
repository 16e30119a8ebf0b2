"""Reads YAML safely, with the place of every node."""
