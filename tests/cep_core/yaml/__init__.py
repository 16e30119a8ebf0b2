"""YAML as values and places: scalars, the two parsers, and what a file may not ask for."""
