"""What a Spark cluster needs of a project that runs on it: an archive of code, settings, and no secret in sight.

`archive` packs Python, Situ and the locked dependencies; `remote` says how a session on a cluster is configured, and
writes the command and the manifest for those who start it by other means. Nothing here runs on the workers.

Front door: `archive.build_archive`, `remote.remote_settings`, `remote.write_package`.
"""
