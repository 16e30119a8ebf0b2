"""The command, and what Airflow calls."""
