"""Spark: the session, data frames and columns, and errors of workers."""
