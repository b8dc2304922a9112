"""Reads the tables of declared sources from CSV, Parquet and XML files and from databases, and keeps them until they
are too old.

`reader` makes one table of one source, `cache` holds the tables that a process uses and refreshes them, `bus_store`
puts a snapshot on the bus so that a repeated Spark batch finds the same rows. It must not know who looks rows up, nor
what they mean.

Front door: `cache` (TablesInUse, open_tables, TableCache, Refreshed), `reader` (TableReader), `bus_store` (TableStore,
FetchedTables).
"""
