"""The audit log: who did what, and how it can be told if somebody changed it afterwards."""
