"""The low-rank model at the shape of the paper's Wikipedia problem (Yu et al. 2014, Table 3), synthetic text.

881,805 rows of 147 words among 366,932, and 213,707 labels of which a row has 7.1; rank 250,
squared loss, five rounds of alternating minimisation (the paper: 9,932 s on 32 cores).  The data come from
``datasets.make_text_like``: they have the shape of the Wikipedia set, not its words, so its accuracy
says nothing about that set.  By default a tenth of the rows is taken, with all words and labels.

A tenth as many rows again are made for testing.  Seconds are those of ``fit`` whole and of the
top five labels of these rows; memory is the largest resident size of the process.

Example: ``python -m benchmarks.wikipedia_shape --share 1``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, flag, read_options, write_json
from benchmarks.machine import describe_machine, peak_memory_bytes

_ROWS, _FEATURES, _LABELS = 881_805, 366_932, 213_707
_TEST_ROWS = 5_000


def main() -> None:
    arguments = read_options(
        __doc__,
        share=flag(0.1, "of the rows; 1 for the full shape"),
        rank=250,
        rounds=5,
        penalty=flag("trace_norm", choices=["trace_norm", "ridge"]),
        regularization=1.0,
        n_jobs=flag(2, "threads"),
        out=flag(help="a JSON file; default results/wikipedia_shape[_share].json", type=Path),
    )
    rows = round(arguments.share * _ROWS)
    train, test, seconds_to_make = _make_data(rows)
    before = peak_memory_bytes()
    model, seconds = _timed_fit(train, arguments)
    scores, seconds_to_predict = _top_five(model, test)
    results = {
        **describe_machine(),
        "rows": rows,
        "features": _FEATURES,
        "non_zeros": int(train.X.nnz),
        "labels": _LABELS,
        "positives": int(train.Y.positives.nnz),
        "rank": arguments.rank,
        "rounds": arguments.rounds,
        "penalty": arguments.penalty,
        "regularization": arguments.regularization,
        "n_jobs": arguments.n_jobs,
        "seconds_to_make_the_data": seconds_to_make,
        "seconds": seconds,
        "seconds_to_predict_5000_rows": seconds_to_predict,
        "peak_gigabytes_before_fit": before / 1e9,
        "peak_gigabytes": peak_memory_bytes() / 1e9,
        "duality_gap": float(model.duality_gap_),
        **scores,
        "trace": [record._asdict() for record in model.trace_],
    }
    print(_sentence(results))
    write_json(arguments.out or _default_file(arguments.share), results)


def _default_file(share: float) -> Path:
    return RESULTS / ("wikipedia_shape.json" if share == 1 else f"wikipedia_shape_{share:g}.json")


def _make_data(rows: int) -> tuple[Any, Any, float]:
    from labelweave.datasets import LabeledData, make_text_like

    start = time.perf_counter()
    sizes = {"labels_per_row": 7.1, "words_per_row": 147, "random_state": 0}
    data = make_text_like(rows + _TEST_ROWS, _FEATURES, _LABELS, **sizes)
    test = LabeledData(data.X[rows:], data.Y[rows:])
    train = LabeledData(data.X[:rows], data.Y[:rows])
    return train, test, time.perf_counter() - start


def _timed_fit(train: Any, arguments: argparse.Namespace) -> tuple[Any, float]:
    from labelweave import LowRankClassifier

    def make(rank: int) -> LowRankClassifier:
        return LowRankClassifier(
            rank,
            penalty=arguments.penalty,
            regularization=arguments.regularization,
            max_iter=arguments.rounds,
            precision="float32",
            tol=0.0,
            n_jobs=arguments.n_jobs,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a number of rounds is asked for, not convergence
        make(10).fit(train.X[:500], train.Y[:500])
        start = time.perf_counter()
        model = make(arguments.rank).fit(train.X, train.Y)
    return model, time.perf_counter() - start


def _top_five(model: Any, test: Any) -> tuple[dict[str, float], float]:
    start = time.perf_counter()
    labels, _ = model.predict_top(test.X, 5)
    seconds = time.perf_counter() - start
    truth = test.Y.positives
    hits = np.array([np.isin(best, truth.indices[low:high]) for best, low, high in _rows(labels, truth)])
    return {f"precision_at_{k}": float(hits[:, :k].mean()) for k in (1, 3, 5)}, seconds


def _rows(labels: Any, truth: Any) -> Any:
    return zip(labels, truth.indptr[:-1], truth.indptr[1:], strict=True)


def _sentence(results: dict[str, Any]) -> str:
    return (
        "{rows} rows, {non_zeros} non-zeros, {labels} labels, rank {rank}, {n_jobs} thread(s): {rounds} "
        "rounds in {seconds:.0f} s, peak memory {peak_gigabytes:.2f} GB (before the fit "
        "{peak_gigabytes_before_fit:.2f} GB); P@1/3/5 {precision_at_1:.3f} / {precision_at_3:.3f} / "
        "{precision_at_5:.3f}; top five of 5,000 rows in {seconds_to_predict_5000_rows:.1f} s."
    ).format(**results)


if __name__ == "__main__":
    main()
