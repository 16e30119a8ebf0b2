"""Runs: the input of a step, the run record, watermark, consistency and lineage."""
