"""Dumps of a tenant's database by the server's own dump tool, and loading them."""
