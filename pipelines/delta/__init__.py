"""Delta tables: where they lie, their versions, commits, and local reading and writing."""
