"""Expressions of the pattern language: types, and evaluators over columns, over one value, and compiled."""
