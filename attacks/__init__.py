"""Attempts to break the library: what was tried, how often, and what happened."""
