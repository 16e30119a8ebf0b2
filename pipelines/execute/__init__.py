"""Runs a plan on Spark: plans shards, sends events to workers, and runs the kernels there."""
