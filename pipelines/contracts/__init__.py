"""Data contracts: their files, rules, conditions and properties."""
