"""Several plans over one table of events: what they have in common is done once."""
