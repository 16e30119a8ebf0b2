"""A pattern's results table: staged rows, coverage, versions of rows, history."""
