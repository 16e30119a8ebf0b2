"""The Spark session and its jars."""
