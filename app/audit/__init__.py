"""The audit log: who did what, and how a later change of it is detected."""
