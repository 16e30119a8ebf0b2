"""Plans on the workers of Spark."""
