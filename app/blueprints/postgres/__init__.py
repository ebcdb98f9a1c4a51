"""What a blueprint for PostgreSQL may hold, and what about it deserves a warning."""

from app.blueprints.postgres.analyze import analyze as analyze
