"""`python -m app.http.snapshot`: prints the API's description, as it is committed in `docs/openapi.json`."""

import sys

from app.http.app import describe
from app.http.openapi import formatted

if __name__ == "__main__":
    sys.stdout.buffer.write(formatted(describe()))
