"""MySQL's and MariaDB's SQL: its lexical structure, and where its statements end."""
