"""Blueprints: SQL that is saved, judged, and applied to databases."""
