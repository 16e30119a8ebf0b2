"""Runs: what a step is given, the run record, watermark and consistency."""
