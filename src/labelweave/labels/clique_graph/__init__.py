"""Graphs of label cliques, which a structured model scores jointly."""

from labelweave.labels.clique_graph.chow_liu import chow_liu
from labelweave.labels.clique_graph.graph import CliqueGraph

__all__ = ["CliqueGraph", "chow_liu"]
