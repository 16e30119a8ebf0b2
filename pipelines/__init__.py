"""The engine on Spark and Delta: reads pinned versions, quarantines, shards, computes, checks, publishes, revises."""
