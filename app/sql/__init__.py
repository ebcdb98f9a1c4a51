"""Reading SQL as the engines read it, before a server sees it: tokens, statements, positions. Knows no resource."""
