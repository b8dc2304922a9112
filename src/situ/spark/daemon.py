"""The process that Spark forks its Python workers from: what they all need is loaded here, once.

Named to Spark by ``spark.python.daemon.module``. Loads only; whatever opens a socket or starts a thread would not
survive the fork.
"""

from __future__ import annotations

import pandas  # noqa: F401 - Arrow asks for it when a worker makes its first column
from pyspark.daemon import manager

import situ.spark.dispatch
import situ.spark.partitions
import situ.spark.source  # noqa: F401 - for the workers
from situ.gc_tuning import freeze_loaded

if __name__ == "__main__":
    freeze_loaded()
    manager()
