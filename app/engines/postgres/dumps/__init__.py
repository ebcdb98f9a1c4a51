"""Dumps of PostgreSQL databases: taken, told, loaded, exchanged and copied."""
