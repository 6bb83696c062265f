"""Compiled passes over the rows of a structured support vector machine.

``arrays`` says how the problem and its dual point are laid out; ``rows`` is block-coordinate Frank-Wolfe.
"""
