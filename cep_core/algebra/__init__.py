"""Kind algebra (Cayuga): CEL queries over streams of events with intervals."""
