"""Formats of the registry's database, in alembic's form: one step for each change."""
