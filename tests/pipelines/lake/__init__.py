"""Delta tables, read and committed."""
