"""Random patterns, events and files, and the comparison of the engine with the reference on them."""
