"""Other programs with one interface: each module trains one of them in a separate process.

The modules import neither labelweave nor each other's program, so each runs in the environment of its
program.  Run them with ``-m``: the module named ``liblinear`` must not hide the package of that name.
"""
