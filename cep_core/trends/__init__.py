"""Kind trends (GRETA): aggregates over all trends, without building them."""
