"""A pattern's results table: computation and staging, coverage of windows, code versions of rows, history."""
