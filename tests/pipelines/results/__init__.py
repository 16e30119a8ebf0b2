"""Result tables: rows, notes, coverage."""
