"""Benchmarks: ours and the peer in one run, as ratios. `make bench`."""
