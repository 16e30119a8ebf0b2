"""An optional peer: Trino's MATCH_RECOGNIZE on the same texts over the same rows. `make bench-trino` installs and runs
it."""
