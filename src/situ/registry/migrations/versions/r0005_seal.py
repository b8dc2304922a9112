"""A secret by which numbers are sealed that clients get to see: made once, random, and the registry's for good."""

from __future__ import annotations

import secrets

from alembic import op
from sqlalchemy import Integer, String, column, table

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = table("number", column("space", String), column("number", Integer), column("text", String))
    op.bulk_insert(number, [{"space": "seal", "number": 0, "text": secrets.token_hex(32)}])
