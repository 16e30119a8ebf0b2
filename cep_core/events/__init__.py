"""Event schema, windows, and the conversion of Arrow columns to arrays and codes."""
