"""A dialect for each engine: its SQL, read before a server sees it. Tokens, statements, what a script holds, what a
statement of a question may do."""
