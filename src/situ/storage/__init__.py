"""Folders at URIs: files on local disks, S3-compatible stores, HDFS and what else Arrow knows.

`state_folder` reads and writes files whole, each complete or not there. It does not know what is in them: checkpoints
of the Spark engine, the archive of the root log.

Front door: `state_folder.StateFolder`, `state_folder.open_folder`, `state_folder.use_options`,
`state_folder.environment_of`.
"""
