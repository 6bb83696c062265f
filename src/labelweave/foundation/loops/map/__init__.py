"""Compiled loops of MAP inference on clique graphs, one example at a time.

``arrays`` says how a graph and its elimination orders are laid out, ``solve`` has the entry points.
"""
