"""Other programs behind one face: each module trains one of them in a process of its own.

The modules import neither labelweave nor each other's program, so each runs in
the environment that has its program.  Run them with ``-m``: the module named
``liblinear`` must not hide the package of that name.
"""
