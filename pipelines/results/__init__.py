"""A pattern's results table: staging, coverage of windows, code versions of rows, history."""
