"""Seconds for problems of the shapes of the paper's patents (Seeger 2008, section 6.1 and table 2).

The texts are synthetic (``benchmarks.problems``): section D has 1,140 rows, 160 classes and 187 nodes,
section B 9,794 rows, 1,172 classes and 1,319 nodes.  As in the paper the kernel is linear on rows of unit
length, the intercepts' variance is 0.01 and the scale starts from 5.  The seconds are those of
``KernelLogisticClassifier.fit``, kernel matrix included, with the scale fixed, for the flat model (the
paper's F1) and the hierarchical one (H1).

The paper's seconds are of a 2.33 GHz processor of its time, with a fixed number of Newton steps and of
conjugate gradients and no certificate: only orders of magnitude are comparable.
"""

import time
from statistics import median
from typing import Any

from benchmarks.frame import RESULTS, command, flag, markdown, save, several, timed
from benchmarks.machine import peak_memory_bytes
from benchmarks.problems import SECTIONS, ClassProblem, load_class_problem

_SCALE, _INTERCEPT_VARIANCE = 5.0, 0.01
_COLUMNS = ("section", "model", "gap asked", "gap", "seconds", "kernel products", "paper's seconds", "ratio")


def _warm_up() -> None:
    problem = load_class_problem("patents-D").first(200)
    _model(problem, "tree", hyperparameters="fixed", n_jobs=1).fit(problem.X, problem.labels)


def _model(problem: ClassProblem, model: str, **options: Any) -> Any:
    from labelweave import KernelLogisticClassifier

    tree = problem.tree if model == "tree" else None
    return KernelLogisticClassifier(
        "linear", scale=_SCALE, intercept_variance=_INTERCEPT_VARIANCE, taxonomy=tree, **options
    )


def _fits(problem: ClassProblem, section: str, model: str, tol: float, arguments: Any) -> dict[str, Any]:
    runs = []
    for _ in range(arguments.repeats):
        fitted = _model(problem, model, hyperparameters="fixed", tol=tol, n_jobs=1)
        runs.append(timed(fitted.fit, problem.X, problem.labels, clock=time.perf_counter)[1])
    result = {
        "section": section,
        "model": model,
        "tol": tol,
        "seconds": median(runs),
        "runs": runs,
        "paper_seconds": SECTIONS[section].seconds[model],
        "status": fitted.status_,
        "gap": fitted.duality_gap_,
        "objective": fitted.trace_[-1].primal,
        "steps": fitted.n_iter_,
        "kernel_products": fitted.kernel_products_,
        "solver_seconds": fitted.trace_[-1].time,
    }
    print(_row(result), flush=True)
    return result


def _row(result: dict[str, Any]) -> str:
    ratio = result["paper_seconds"] / result["seconds"]
    text = (
        "| {section} | {model} | {tol:g} | {gap:.0e} | {seconds:.2f} | {kernel_products:.0f} | "
        "{paper_seconds:,.0f} | {ratio:.0f} |"
    )
    return text.format(**result, ratio=ratio)


@command(
    sections=flag(["D"], choices=list(SECTIONS)),
    models=several(("flat", "tree")),
    tol=[1e-4, 1e-6],
    repeats=3,
    out=RESULTS / "patents_shape.json",
)
def main(arguments: Any) -> None:
    fits: list[dict[str, Any]] = []
    _warm_up()
    for section in arguments.sections:
        problem = load_class_problem(f"patents-{section}")
        for model in arguments.models:
            fits += [_fits(problem, section, model, tol, arguments) for tol in arguments.tol]
    table = [*markdown(_COLUMNS), *map(_row, fits)]
    print("\n".join(table))
    results = {"threads": 1, "peak_memory_bytes": peak_memory_bytes()}
    results |= {"scale": _SCALE, "intercept_variance": _INTERCEPT_VARIANCE}
    save(arguments.out, results | {"fits": fits, "table": table})
