"""What the console's pages are made with, and how it came here. Not part of the package that is installed."""
