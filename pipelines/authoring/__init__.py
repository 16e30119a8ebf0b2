"""Tools for authors: new projects and contracts, validation, tests of patterns, trial runs on a sample."""
