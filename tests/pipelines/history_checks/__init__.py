"""`expect` of a pattern, over its history."""
