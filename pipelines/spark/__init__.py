"""Spark: the session, frames and columns, and what its workers raise."""
