"""Generated streams."""
