"""Whose a checkpoint of the Spark engine is: `owner` says of which project and job a folder is.

It does not know what is in the files; :mod:`situ.storage` reads and writes them.

Front door: `owner.CheckpointOwner`.
"""
