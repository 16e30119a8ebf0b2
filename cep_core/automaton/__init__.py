"""Kind automaton (AFA): any state machine with a typed register, run over partitions in time order."""
