"""Numbers for texts of any length: PostgreSQL indexes none of more than 2,704 bytes, and a filter may be longer."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("number") as table:
        table.drop_constraint("number_text", type_="unique")
