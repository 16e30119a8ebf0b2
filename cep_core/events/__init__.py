"""Events as the engine reads them: schema, windows, arrays and codes."""
