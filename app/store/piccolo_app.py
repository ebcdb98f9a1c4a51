"""Piccolo's configuration of our tables and migrations."""

from pathlib import Path

from piccolo.conf.apps import AppConfig

from app.store.tables import TABLES

APP_CONFIG = AppConfig(
    app_name="headwater",
    migrations_folder_path=str(Path(__file__).parent / "migrations"),
    table_classes=list(TABLES),
)
