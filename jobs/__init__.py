"""Entry points: the `trendlake` command and what Airflow and spark-submit start."""

if __name__ == "jobs":  # in a clone, from its root
    from trendlake.clone_names import share

    share(__name__)
