"""Where the keys of backups are kept beside the store."""

from app.store.sealed import SealedColumn

SEALED_KEY = SealedColumn(table="backups", column="wrapped_key", row="s.uuid::text")
"""`app.backup_store.keys.key_place` is the place of one."""
