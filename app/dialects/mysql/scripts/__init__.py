"""What a blueprint for MySQL or MariaDB may hold, and what about it deserves a warning."""
