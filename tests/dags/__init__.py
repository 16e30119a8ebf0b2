"""Airflow as it is: the DAGs it makes of the patterns, their errors, and a run from end to end."""
