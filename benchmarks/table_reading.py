"""How fast tables are read, compared with pandas and pyarrow, which only convert bytes to columns.

Times of labelweave are those of ``read_table_columns``: columns checked and numbers as float64, first with
the tags as text, as in pandas, then as a matrix of labels, then with guessed kinds of columns too.  The last
time is that of converting columns to features.  CPU seconds, the minimum of interleaved rounds of all
readers, on files in the page cache.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
from pyarrow import parquet

from benchmarks.frame import RESULTS, command, in_turns, save
from labelweave.datasets import TableColumns, TableVectorizer, read_table_columns

_COLUMNS = TableColumns(
    labels="tags", label_separator="|", text="words", categorical="kind", numeric=("size", "weight", "count")
)
_TYPED = TableColumns(text=("words", "tags"), categorical="kind", numeric=("size", "weight", "count"))
_GUESSED = TableColumns(labels="tags", label_separator="|")


def _frame(n_rows: int, missing: float) -> pd.DataFrame:
    random = np.random.default_rng(0)
    words, tags = np.array([f"word{k}" for k in range(5000)]), np.array([f"tag{k}" for k in range(50)])
    frame = pd.DataFrame(
        {
            "words": [" ".join(row) for row in words[random.integers(5000, size=(n_rows, 8))]],
            "kind": random.choice(["red", "green", "blue"], n_rows),
            "size": random.normal(size=n_rows).round(6),
            "weight": random.normal(size=n_rows) * 1e3,
            "count": random.integers(1000, size=n_rows).astype(float),
            "tags": ["|".join(row) for row in tags[random.integers(50, size=(n_rows, 3))]],
        }
    )
    for name in ("kind", "size", "weight", "count"):
        frame.loc[random.random(n_rows) < missing, name] = None
    return frame


def _files(n_rows: int, folder: Path) -> dict[str, Path]:
    frame, gaps = _frame(n_rows, 0.0), _frame(n_rows, 0.05)
    paths = {
        "CSV": folder / "plain.csv",
        "CSV, 5 % missing": folder / "missing.csv",
        "CSV, quoted": folder / "quoted.csv",
        "TSV": folder / "plain.tsv",
        "JSON lines": folder / "plain.jsonl",
        "Parquet": folder / "plain.parquet",
    }
    frame.to_csv(paths["CSV"], index=False)
    gaps.to_csv(paths["CSV, 5 % missing"], index=False)
    frame.assign(words=frame["words"] + ', a "word"').to_csv(paths["CSV, quoted"], index=False)
    frame.to_csv(paths["TSV"], index=False, sep="\t")
    rows = frame.to_dict("records")
    paths["JSON lines"].write_text("".join(json.dumps(row) + "\n" for row in rows))
    frame.to_parquet(paths["Parquet"])
    return paths


def _readers(path: Path) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        "labelweave": lambda: read_table_columns(path, _TYPED),
        "labelweave, labels": lambda: read_table_columns(path, _COLUMNS),
        "labelweave, labels, kinds guessed": lambda: read_table_columns(path, _GUESSED),
    }
    if path.suffix in (".csv", ".tsv"):
        separator = "\t" if path.suffix == ".tsv" else ","
        parsing = pyarrow.csv.ParseOptions(delimiter=separator)
        found["pandas"] = lambda: pd.read_csv(path, sep=separator)
        found["pandas, engine pyarrow"] = lambda: pd.read_csv(path, sep=separator, engine="pyarrow")
        found["pyarrow"] = lambda: pyarrow.csv.read_csv(path, parse_options=parsing)
    elif path.suffix == ".jsonl":
        found["pandas"] = lambda: pd.read_json(path, lines=True)
        found["pyarrow"] = lambda: pyarrow.json.read_json(path)
    else:
        found["pandas"] = lambda: pd.read_parquet(path)
        found["pyarrow"] = lambda: parquet.read_table(path)
    return found


def _features_of(path: Path) -> Callable[[], Any]:
    frame = read_table_columns(path, _COLUMNS).X
    vectorizer = TableVectorizer("words", "kind", ("size", "weight", "count"), missing_numeric="mean")
    return lambda: vectorizer.fit_transform(frame)


@command(rows=40_000, rounds=11, out=RESULTS / "table_reading.json")
def main(chosen: Any) -> None:
    versions = {"pandas": pd.__version__, "pyarrow": pa.__version__}
    results: dict[str, Any] = versions | {"rows": chosen.rows, "rounds": chosen.rounds}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in _files(chosen.rows, Path(folder)).items():
            readers = {**_readers(path), "features": _features_of(path)}  # the first round is not counted
            seconds = in_turns(readers, chosen.rounds + 1)
            found = {reader: round(min(taken[1:]), 4) for reader, taken in seconds.items()}
            results[name] = {"bytes": path.stat().st_size, "seconds": found}
            print(f"{name:18}", *(f"{reader} {taken:.3f} s" for reader, taken in found.items()), sep="  ")
    save(chosen.out, results)
