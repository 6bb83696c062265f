"""Compiled loops of MAP inference on clique graphs, one example at a time.

``arrays`` defines the layout of a graph and its elimination orders, ``solve`` has the entry points.
"""
