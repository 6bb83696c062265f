"""``python -m labelweave`` is the program ``labelweave``."""

from labelweave.app.cli import main

if __name__ == "__main__":
    main(prog_name="labelweave")
