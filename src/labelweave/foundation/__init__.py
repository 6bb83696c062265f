"""Shared foundations: argument checks, arrays, compiled loops, interrupts, warnings."""
