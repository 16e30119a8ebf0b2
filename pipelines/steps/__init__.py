"""The steps of a run: check_source, compute, check_results, publish. They pass facts through `trendlake_runs` only."""
