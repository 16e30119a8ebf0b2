"""The engine on Spark and Delta: read at a version, quarantine, shard, compute, check, publish, record."""
