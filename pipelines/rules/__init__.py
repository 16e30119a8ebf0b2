"""A contract's rules applied to rows: Arrow in, truth values out, on every road."""
