"""Entry points: the `trendlake` command and what Airflow and spark-submit start."""
