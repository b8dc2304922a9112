"""Indexes for what is asked at every change: what has come and gone since a version, and what happened to an object."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("deployment_object_first", "deployment_object", ["first"])
    op.create_index("deployment_object_ended", "deployment_object", ["ended"])
    op.create_index("change_deployment", "change", ["deployment"])
    op.create_index("change_object", "change", ["kind", "name"])
