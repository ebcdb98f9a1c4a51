"""What a blueprint for PostgreSQL may hold, and what about it deserves a warning."""
