"""What stands on fitted models: the command line, reports, pictures, facts, pages, audits and queries.

It may need click, rich, jinja2, pandas and matplotlib: ``pip install "labelweave[app]"``.
"""
