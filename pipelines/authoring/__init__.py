"""Before a run: first files, checks of files, tests of patterns, and a pattern tried on a sample."""
