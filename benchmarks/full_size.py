"""One fit at the full size of the RCV1 topics problem, on synthetic text.

781,265 rows (RCV1-v2's test part), 47,236 features, about 75 non-zeros per row, 103 labels, 3.2 of them per
row.  The data come from ``datasets.make_text_like``; they have the shape of RCV1, not its words.  The time is
that of the complete ``fit``, to a relative duality gap of 1e-3.
"""

from pathlib import Path
from typing import Any

from benchmarks.frame import command, flag
from benchmarks.large_fits import large_fit, tell
from labelweave import MaxMarginClassifier
from labelweave.datasets import make_text_like

_ROWS, _FEATURES, _LABELS = 781_265, 47_236, 103


@command(
    rows=flag(_ROWS, "fewer for a shorter run"),
    out=flag(help="a JSON file; default results/full_size[_ROWS].json", type=Path),
)
def main(arguments: Any) -> None:
    rows = arguments.rows
    data = make_text_like(rows, _FEATURES, _LABELS, labels_per_row=3.2, words_per_row=75, random_state=0)
    settings = {"tol": 1e-3, "n_jobs": 2}
    model = MaxMarginClassifier(**settings, random_state=0)
    name = "full_size" if rows == _ROWS else f"full_size_{rows}"
    tell(settings | large_fit(model, data.X, data.Y), arguments.out, name)
