"""An optional peer: Flink's CEP on the same queries over the same events. `make bench-flink` installs and runs it."""
