"""Kind matches."""
