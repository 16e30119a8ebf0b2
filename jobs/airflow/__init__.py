"""A project's Airflow on one machine: its home, its login, its processes and its REST API."""
