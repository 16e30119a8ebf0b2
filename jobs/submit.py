"""What spark-submit starts: the `trendlake` command inside the Spark that it set up.

spark-submit [...] jobs/submit.py compute delay_snowball --from 2013-01-01 --to 2013-01-02 --run-id r1
"""

from jobs.main import app

if __name__ == "__main__":
    app(prog_name="trendlake")
