"""`python -m workers --queue control --queue engine:us-east-1`: one worker process for these queues."""

import gc

# What is imported stays. Looking for cycles among it takes an eighth of a start's processor time.
gc.disable()

from app.core.process_exit import run_and_exit  # noqa: E402
from workers.serving import main  # noqa: E402

if __name__ == "__main__":
    run_and_exit(main)
