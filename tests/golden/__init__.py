"""A fixed corpus of queries, and a checked-in digest of the results that each version of an engine gives."""
