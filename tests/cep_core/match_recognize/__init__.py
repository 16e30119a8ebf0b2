"""Kind match_recognize."""
