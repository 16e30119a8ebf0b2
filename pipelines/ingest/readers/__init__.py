"""Reads files of events (CSV, Parquet, JSON lines) into the types of a contract, in blocks."""
