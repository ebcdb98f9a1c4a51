"""The module that Piccolo's migrations import by name (`PICCOLO_CONF=app.store.piccolo_conf`)."""

from piccolo.conf.apps import AppRegistry

from app.store.engine import DB as DB

APP_REGISTRY = AppRegistry(apps=["app.store.piccolo_app"])
