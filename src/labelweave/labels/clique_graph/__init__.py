"""Graphs of label cliques: which labels a structured model scores together."""

from labelweave.labels.clique_graph.chow_liu import chow_liu
from labelweave.labels.clique_graph.graph import CliqueGraph

__all__ = ["CliqueGraph", "chow_liu"]
