"""Delta tables: paths, versions and commits; reading and writing them with and without Spark."""
