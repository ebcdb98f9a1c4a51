"""Piccolo's engine on our own PostgreSQL. `app.store.session` gives it its address and its pool."""

from piccolo.engine.postgres import PostgresEngine

DB = PostgresEngine(config={})
