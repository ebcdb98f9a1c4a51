"""`python -m app.http.snapshot`: prints the API's description, as it is committed in `docs/openapi.json`."""

import sys

from app.http.openapi import formatted
from app.http.routes import describe

if __name__ == "__main__":
    sys.stdout.buffer.write(formatted(describe()))
