"""Spark's Python workers for many small questions: what they import is there before they part from their daemon.

Each worker would import it again, and look through it for garbage after each task.
"""

import gc

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.daemon
import pyspark.sql.pandas.serializers
import pyspark.worker

import dpcausal.data.remote_blocks
import dpcausal.data.sources.pyspark  # noqa: F401

if __name__ == "__main__":
    gc.freeze()
    pyspark.daemon.manager()
