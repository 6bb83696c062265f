"""Measurements of labelweave against other programs; run with ``python -m benchmarks.<name>``."""
