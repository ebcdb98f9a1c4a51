"""`python -m app.local`: runs the embedded stack in the foreground, as `headwater up` does."""

import os

from app.core.process_exit import run_and_exit
from app.core.settings import InvalidSettings, Settings
from app.local.screen import Screen
from app.local.stack import run
from app.quotas.file import load_plans


def main() -> int:
    try:
        settings = Settings.load(os.environ)
        # The services read it themselves. Here it is only checked, before any of them starts.
        load_plans(settings.plans_file)
    except InvalidSettings as error:
        Screen().fail(str(error))
        return 1
    return run(settings)


if __name__ == "__main__":
    run_and_exit(main)
