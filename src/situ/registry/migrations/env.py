"""What alembic runs to bring a database to a format: with the connection, and inside the transaction, of its caller."""

from __future__ import annotations

from alembic import context

from situ.registry.database import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=context.config.attributes["version_table"],
)
context.run_migrations()
