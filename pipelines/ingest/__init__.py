"""The way of rows into a source's table: deliveries, corrections, deletions, repaired rows."""
