"""The first format: objects, deployments, changes, numbers, states.

A migration stands for itself: it does not use the tables of the release, which go on changing.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "object",
        sa.Column("kind", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(512), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
    )
    op.create_table(
        "deployment",
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("root_version", sa.Integer, nullable=False),
    )
    op.create_table(
        "deployment_object",
        sa.Column("kind", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(512), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("first", sa.Integer, sa.ForeignKey("deployment.version"), nullable=False),
        sa.Column("ended", sa.Integer, nullable=True),
        sa.ForeignKeyConstraint(["kind", "name", "version"], ["object.kind", "object.name", "object.version"]),
    )
    op.create_table(
        "change",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("deployment", sa.Integer, sa.ForeignKey("deployment.version"), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("from_version", sa.Integer, nullable=True),
        sa.Column("to_version", sa.Integer, nullable=True),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "number",
        sa.Column("space", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.UniqueConstraint("space", "text", name="number_text"),
    )
    op.create_table(
        "state",
        sa.Column("part", sa.String(64), primary_key=True),
        sa.Column("key", sa.String(512), primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
    )
