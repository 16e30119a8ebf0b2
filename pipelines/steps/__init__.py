"""The steps of a run: check_source, compute, check_results, publish. Between them only `trendlake_runs` speaks."""
