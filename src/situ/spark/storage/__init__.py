"""Where the Spark engine keeps what outlives a batch: a folder at a URI, and who may write there.

`state_folder` reads and writes files on local disks, S3-compatible stores, HDFS and what else Arrow knows; `owner` says
of which project and job a folder is. Neither knows what is in the files.

Front door: `state_folder.StateFolder`, `state_folder.open_folder`, `owner.CheckpointOwner`.
"""
