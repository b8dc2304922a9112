"""Detection over history, as a batch on all cores: an archive of the root log, or files of others.

`mapped_files` makes events of rows of CSV and Parquet files, as a map declares them; `detect` reads events in tasks, as
columns where they are in columns, and finds situations with the steps that batches of DataFrames take. It reads files
by :mod:`situ.storage` and not by Spark, so every store that holds checkpoints holds history, too. It knows no bus.

Front door: `detect.detect_history`, `detect.HistoryPlan`, `mapped_files.FileMap`.
"""
