"""The archive of the root log: what is written where, how a log is followed, and how archive and bus are read as one.

`format` says what an archive is and finds those of other packages, `parquet` is the one that comes with Situ. `layout`
makes tables of messages of the log, and the messages again. `archiver` follows the log of a run; `history` reads what
the bus no longer has. Who detects over an archive is `situ.spark.history`.

Front door: `format.open_archive`, `format.no_such_format`, `format.Archive`, `archiver.Archiver`,
`history.ArchivedBus`.
"""
