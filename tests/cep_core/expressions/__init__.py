"""Functions and operators on values."""
