"""Kind trends."""
