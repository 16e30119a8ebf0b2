"""Data contracts: reads their files and turns them into rules, row conditions and properties."""
