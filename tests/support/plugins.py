"""The plugins of every run of the tests, and of the small runs that show what they do."""

pytest_plugins = [
    "tests.support.supervision",
    "tests.support.watchdog",
    "tests.support.blame",
    "tests.support.progress",
    "tests.support.restarts",
]
