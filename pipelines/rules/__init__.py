"""What a contract's rules say of rows: Arrow in, truth values out, on every road."""
