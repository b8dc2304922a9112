"""The project folder: which files there are, whether they are right, their canonical form, their JSON Schemas,
snapshots, the tests of its policies, the files a run leaves in `.situ`, and what its run reports.

`check_folder` turns a folder into a deployment or into all its problems at once. `folder`, `state_folder` and `check`
load neither database nor bus client nor asyncio. It knows nothing of commands.

Front door: `folder.find_project`, `folder.read_folder`, `check.check_folder`, `apply.apply_folder`,
`create.create_project`, `format.format_folder`, `schemas.write_schemas`, `snapshot.read_snapshot`,
`policy_tests.run_tests`, `status.read_status_on_bus`.
"""
