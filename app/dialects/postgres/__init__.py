"""PostgreSQL's SQL: its lexical structure, and its own parser behind guards."""
