"""The application that spark-submit starts: the `trendlake` command in the Spark that spark-submit has configured.

spark-submit [...] jobs/submit.py compute delay_snowball --from 2013-01-01 --to 2013-01-02 --run-id r1
"""

import sys
from pathlib import Path

# Python puts a script's folder first on its path, where `jobs/airflow` would stand for Airflow itself.
FOLDER = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != FOLDER]

from trendlake.command import main  # noqa: E402

if __name__ == "__main__":
    main()
