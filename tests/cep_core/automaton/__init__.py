"""Kind automaton."""
