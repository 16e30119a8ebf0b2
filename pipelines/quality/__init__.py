"""Checks rows against a contract: splits good rows from quarantined ones, and runs Great Expectations."""
