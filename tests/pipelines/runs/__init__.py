"""Runs, their records and their lineage."""
