"""What a blueprint for PostgreSQL may hold, and what about it deserves a warning."""

from app.dialects.postgres.scripts.analyzer import analyze as analyze
