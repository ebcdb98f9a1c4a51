"""`python -m app.http`: one API process. Several can run concurrently."""

import gc

# What is imported stays. Looking for cycles among it takes an eighth of a start's processor time.
gc.disable()

from app.core.process_exit import run_and_exit  # noqa: E402
from app.http.serving import main  # noqa: E402

if __name__ == "__main__":
    run_and_exit(main)
