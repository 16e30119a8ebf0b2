"""The pipelines on a real Spark with real Delta tables."""
