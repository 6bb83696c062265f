"""Applications of fitted models: the command line, reports, plots, model facts, pages, audits and queries.

They need parts of click, rich, jinja2, pandas and matplotlib: ``pip install "labelweave[app]"``.
"""
