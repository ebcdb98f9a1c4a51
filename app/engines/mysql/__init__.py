"""MySQL 8.0.14 and later, and MariaDB 10.5 and later, through an administrator that need not be root."""

from app.engines.mysql.adapter import MySQLAdapter as MySQLAdapter
from app.engines.mysql.flavours import administrator_grants as administrator_grants
