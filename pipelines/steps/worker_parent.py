"""The process whose copies (forks) Spark's Python workers are: it has loaded what each of them needs.

Spark's own loads little, and each worker then takes a second of a core to import the engine, after a minute without
work again: Spark ends workers that have none for so long. A module that is loaded before a fork is also in memory once,
not once for each worker. `spark.python.daemon.module` names this module.
"""

from __future__ import annotations

import gc

import pyspark.worker  # noqa: F401 - for the workers
from pyspark.daemon import manager

import trendlake.pipelines.results.staging  # noqa: F401 - for the workers

if __name__ == "__main__":
    gc.freeze()  # no collection in a worker looks at modules, which would copy their memory
    manager()
