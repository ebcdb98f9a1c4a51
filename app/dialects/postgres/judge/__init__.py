"""Whether a statement for PostgreSQL may be executed for a question."""
