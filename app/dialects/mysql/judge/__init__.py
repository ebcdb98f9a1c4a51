"""Whether a statement for MySQL or MariaDB may be executed for a question."""
