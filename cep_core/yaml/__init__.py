"""Reads YAML safely and keeps the line and column of every node."""
