"""Dumps of PostgreSQL databases: taken, described, loaded, exchanged and copied."""
