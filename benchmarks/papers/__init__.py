"""Experiments of the papers, on real data beside the repository."""
