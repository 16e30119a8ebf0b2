"""A plan on Spark: events cut into shards, brought to workers, and run there."""
