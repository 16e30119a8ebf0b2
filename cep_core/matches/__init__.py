"""Kind matches (SASE+): returns each match. Equal runs are merged, and matches share one buffer."""
