"""Signing in to the console, and the sessions of people who did."""
