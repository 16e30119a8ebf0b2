"""Kind automaton (AFA): any graph of states and arcs over a typed register, run over ordered partitions."""
