"""The engine, in the rooms of cep_core."""
