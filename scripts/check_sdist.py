"""Build an sdist, unpack it, and run tests there: it must be enough to test and document.

python scripts/check_sdist.py [TEST ...]    # by default those of the package and of its documents
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ["tests/test_package.py", "tests/labels", "tests/docs"]
NEEDED = ["tests/conftest.py", "docs/recipes.md", "docs/architecture.md", "examples/ticket_table.py",
          "Makefile", "scripts/capabilities.py", "LICENSE", "src/labelweave/py.typed"]  # fmt: skip


def main(tests: list[str]) -> int:
    """Build, unpack, check for needed files, run tests."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT], check=True)
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
        (inside,) = (path for path in Path(folder).iterdir() if path.is_dir())
        missing = [name for name in NEEDED if not (inside / name).is_file()]
        if missing:
            print(f"The sdist lacks {', '.join(missing)}.")
            return 1
        print(f"{archive.name}, {archive.stat().st_size / 1e6:.1f} MB")
        paths = {"PYTHONPATH": str(inside / "src")}
        fast = "not slow and not search"
        command = [sys.executable, "-m", "pytest", "-q", "-m", fast, *(tests or TESTS)]
        return subprocess.run(command, cwd=inside, env=os.environ | paths, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
