"""Make the slow twins of tests/reference and the scripts importable from every test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "scripts"))
