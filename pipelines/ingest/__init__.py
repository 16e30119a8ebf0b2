"""Writes a source's table: deliveries, corrections, deletions and repaired rows."""
