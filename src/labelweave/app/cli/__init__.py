"""The command line: one file a command.  Nothing outside this folder prints."""

from labelweave.app.cli.program import main

__all__ = ["main"]
