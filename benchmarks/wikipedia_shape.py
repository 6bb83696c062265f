"""The low-rank model at the shape of the paper's Wikipedia problem (Yu et al.  2014, Table 3), synthetic
text.

881,805 rows of 147 words among 366,932, and 213,707 labels, 7.1 per row; rank 250, squared loss, five rounds
of alternating minimization (the paper: 9,932 s on 32 cores).  The data come from ``datasets.make_text_like``:
they have the shape of the Wikipedia set, not its words, so the accuracy does not apply to that set.  By
default a tenth of the rows is used, with all words and labels.

Times are those of the complete ``fit``, and of the top five labels of 5,000 other rows; memory is the largest
resident size of the process.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import command, flag, timed
from benchmarks.large_fits import large_fit, tell
from labelweave import LowRankClassifier
from labelweave.datasets import make_text_like

_ROWS, _FEATURES, _LABELS = 881_805, 366_932, 213_707
_TEST_ROWS = 5_000


@command(
    share=flag(0.1, "of the rows; 1 for the full shape"),
    out=flag(help="a JSON file; default results/wikipedia_shape[_share].json", type=Path),
)
def main(arguments: Any) -> None:
    n, sizes = round(arguments.share * _ROWS), {"labels_per_row": 7.1, "words_per_row": 147}
    data = make_text_like(n + _TEST_ROWS, _FEATURES, _LABELS, **sizes, random_state=0)
    settings: dict[str, Any] = {"rank": 250, "penalty": "trace_norm", "alpha": 1.0, "n_jobs": 2}
    model = LowRankClassifier(**settings, max_iter=5, dtype="float32", tol=0.0)
    few = LowRankClassifier(10, max_iter=5, dtype="float32")
    found = settings | large_fit(model, data.X[:n], data.Y[:n], few)
    (labels, _), seconds = timed(model.predict_top, data.X[n:], 5, clock=time.perf_counter)
    found["seconds_to_predict_5000_rows"] = seconds
    truth = data.Y.positives[n:]
    rows = zip(labels, truth.indptr[:-1], truth.indptr[1:], strict=True)
    hits = np.array([np.isin(best, truth.indices[low:high]) for best, low, high in rows])
    found |= {f"precision_at_{k}": float(hits[:, :k].mean()) for k in (1, 3, 5)}
    name = "wikipedia_shape" if arguments.share == 1 else f"wikipedia_shape_{arguments.share:g}"
    tell(found, arguments.out, name)
