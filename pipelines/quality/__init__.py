"""The judgement of rows by a contract: which are good, which are quarantined, and what Great Expectations says."""
