"""Attempts to break the library, with stored results."""
