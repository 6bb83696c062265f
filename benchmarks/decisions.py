"""From scores to decisions on real sets: tuned thresholds, calibration, conformal label sets.

Models are fitted to the sets' training rows; thresholds and probabilities come from parts of them that a
clone did not see.  "tuned" holds a fifth of the rows out and costs less than one more fit.  Oracles choose
on the test rows themselves.  Expected calibration errors have 15 bins of equal width.  Conformal sets are
calibrated on a random quarter of the test rows, which the model did not see, and looked at on the other
three quarters, in 200 splits, with the confidence 0.95.  The text problem is synthetic.  "if true" is the
calibration error that the same probabilities would show if labels were drawn from them: the measure's own
bias with so many rows and bins.  "defaults" looks at training rows alone, "memory" at 100,000 labels.

Parts that are not asked for keep their results.  Seconds are the processor's, with one thread.

Example: ``OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python -m benchmarks.decisions --parts thresholds``.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.decision_defaults import measure_defaults
from benchmarks.decision_memory import measure_memory
from benchmarks.decision_runs import (
    SETS,
    measure_calibration,
    measure_conformal,
    measure_text_problem,
    measure_thresholds,
    read,
)
from benchmarks.frame import RESULTS, flag, read_json, read_options, several, write_json
from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA

_PARTS = {
    "thresholds": measure_thresholds,
    "calibration": measure_calibration,
    "conformal": measure_conformal,
    "defaults": measure_defaults,
}
_WITHOUT_SETS = ("text", "memory")


@needs_data
def main() -> None:
    arguments = read_options(
        __doc__,
        parts=several([*_PARTS, *_WITHOUT_SETS]),
        sets=several(SETS),
        text_rows=20_000,
        memory_rows=20_000,
        data=flag(DEFAULT_DATA, "the folder that has mulan/"),
        out=RESULTS / "decisions.json",
    )
    results: dict[str, Any] = read_json(arguments.out)
    results |= {"threads": 1}
    for part in arguments.parts:
        if part in _WITHOUT_SETS:
            results[part] = _measure_made_up(part, arguments) | {"measured": describe_machine()}
            print(_table(part, results[part]["programs"]), flush=True)
            write_json(arguments.out, results)
            continue
        for name in arguments.sets:
            found = _PARTS[part](read(name, arguments.data))
            results.setdefault(part, {})[name] = found | {"measured": describe_machine()}
            shown = found["f1"] if part == "thresholds" else found
            print(_table(f"{part}, {name}", shown), flush=True)
            write_json(arguments.out, results)


def _measure_made_up(part: str, arguments: argparse.Namespace) -> dict[str, Any]:
    if part == "memory":
        return {"rows": arguments.memory_rows, "programs": measure_memory(arguments.memory_rows)}
    rows, labels = arguments.text_rows, 100
    return {"rows": rows, "labels": labels, "programs": measure_text_problem(rows, labels)}


def _table(title: str, lines: dict[str, dict[str, float]]) -> str:
    columns = list(dict.fromkeys(column for line in lines.values() for column in line))
    rows = [f"\n{title}\n", f"| | {' | '.join(columns)} |", "|" + "---|" * (len(columns) + 1)]
    for name, line in lines.items():
        cells = (f"{line[column]:.4f}" if column in line else "" for column in columns)
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
