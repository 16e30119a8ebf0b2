"""Where raw events come from: one module a source, each yielding deliveries as Arrow tables."""
