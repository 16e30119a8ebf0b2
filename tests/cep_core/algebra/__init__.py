"""Kind algebra."""
