"""The pattern language: from text to syntax tree and back."""
