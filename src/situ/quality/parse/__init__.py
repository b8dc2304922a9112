"""What people and programs write about quality is read and checked here: `quality/*.yaml`, and the JSON that clients
send.

Everything that is wrong is reported at once, each at its place. It makes values of `quality.model` and decides nothing.

Front door: quality_files (load_quality), client_calls (parse_expectation, parse_profile, parse_profile_revision),
declarations (read_expectation, read_profile, and the `*_KEYS` that the JSON Schema needs), values (Values, read_cost).
"""
