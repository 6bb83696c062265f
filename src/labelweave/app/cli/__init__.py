"""The command line, with one file per command.  No other folder prints."""

import sys
from typing import Any

__all__ = ["main"]


def main(**options: Any) -> None:
    """Run the program, or name the package that is missing."""
    try:
        from labelweave.app.cli.program import main as program
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.stderr.write(f"labelweave: The command line needs {error.name}: install labelweave[app].\n")
        sys.exit(2)
    program(**options)
