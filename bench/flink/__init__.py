"""An optional peer: Flink's CEP over the same falling prices. `make bench-flink` installs it and runs it."""
