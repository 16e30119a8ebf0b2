"""The engine on Spark and Delta: reads pinned versions, quarantines, shards, computes, checks, publishes, revises."""

if __name__ == "pipelines":  # in a clone, from its root
    from trendlake.clone_names import share

    share(__name__)
