"""PostgreSQL 16 and later, through an administrator that need not be a superuser."""

from app.engines.postgres.adapter import PostgresAdapter as PostgresAdapter
from app.engines.postgres.guard import make_template as make_template
