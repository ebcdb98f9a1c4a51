"""The ledger of usage: closing its periods, and what it says. Decision 50."""
