"""Kind trends (GRETA): counts and aggregates all trends without listing them."""
