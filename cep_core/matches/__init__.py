"""Kind matches (SASE+): patterns as automata with registers, runs merged, matches in a shared buffer."""
