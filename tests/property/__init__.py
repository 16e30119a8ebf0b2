"""Property tests: the kernels against the reference, on patterns and streams nobody would write by hand."""
