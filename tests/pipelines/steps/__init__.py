"""The steps of a run."""
