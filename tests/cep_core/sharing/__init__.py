"""Several plans over one table of events."""
