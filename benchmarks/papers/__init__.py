"""Experiments of the papers, on real data outside the repository."""
