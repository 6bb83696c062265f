"""Kernel products per fit of kernel logistic models, by linear solver and preconditioner.

A kernel product multiplies the kernel matrix with a column a class (Seeger 2008, section 2: they
are what a fit costs).  Newton's systems are solved

* by the paper's symmetric form, equation 5, always 25 iterations in a step (the paper's k2), plain
  or preconditioned by the diagonal (appendix B);
* by the same, until the residual has fallen by what Newton's method needs there;
* by conjugate gradients in the function space of the kernel, plain or with the spectral
  preconditioner of a rank, whose own products are counted: one for as many columns as there are classes.

Every fit ends at the same relative duality gap.  Satimage and ImCLEF07A have RBF kernels (width
as a multiple of the paper's 1 / (2 sum of variances)) and an intercept variance of 1; synthetic patents of
section D have the linear kernel and 0.01.  The scale is that of every class, or of every node of
the tree.

Example: ``python -m benchmarks.kernel_products --problems imclef-2000``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, flag, markdown, read_options, save
from benchmarks.logistic_fits import Fit, Prior, fit, kernel_matrix
from benchmarks.logistic_problems import ClassProblem, load_class_problem
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA

_SETTINGS = {
    "imclef": [(scale, width) for scale in (10.0, 1000.0) for width in (0.1, 1.0, 5.0)],
    "satimage": [(10.0, 1.0), (1000.0, 1.0)],
    "patents": [(5.0, None), (100.0, None)],
}
_PAPER_ITERATIONS = 25


@needs_data
def main() -> None:
    from labelweave.arrays import Workers

    arguments = read_options(
        __doc__,
        problems=["imclef-2000", "satimage", "patents-D"],
        ranks=[50, 100, 200, 400],
        tol=1e-6,
        most_steps=flag(100, "of Newton's method"),
        threads=1,
        data=DEFAULT_DATA,
        out=RESULTS / "kernel_products.json",
    )
    rows: list[dict[str, Any]] = []
    with Workers(arguments.threads).running() as workers:
        for name in arguments.problems:
            problem = load_class_problem(name, arguments.data)
            for scale, width in _SETTINGS[name.partition("-")[0]]:
                rows += _measure(problem, scale, width, arguments, workers)
    tables = [_table(rows, measure, text) for measure, text in (("products", "0f"), ("seconds", "2f"))]
    print("\n\n".join("\n".join(table) for table in tables))
    settings = {name: getattr(arguments, name) for name in ("tol", "most_steps", "threads", "ranks")}
    results = {"rows": rows, "products": tables[0], "seconds": tables[1]}
    save(arguments.out, settings | results)


def _measure(
    problem: ClassProblem, scale: float, width: float | None, arguments: argparse.Namespace, workers: Any
) -> list[dict[str, Any]]:
    """Fit the flat and the hierarchical model in every way."""
    from labelweave.losses import SoftmaxLoss

    gram = _matrix(problem, width, workers)
    loss = SoftmaxLoss(problem.codes, len(problem.classes), np.ones((len(problem.codes), 1)))
    found = []
    for tree in (None, problem.tree) if problem.tree is not None else (None,):
        prior = Prior(scale, 0.01 if width is None else 1.0, tree)
        fits: dict[str, Fit] = {}
        for name, options in _ways(arguments.ranks).items():
            fits[name] = fit(
                gram, prior, loss, workers, arguments.tol,
                classes=problem.classes, max_iter=arguments.most_steps, **options,
            )  # fmt: skip
        model = "flat" if tree is None else "tree"
        row = {"problem": problem.name, "model": model, "scale": scale, "width": width}
        found.append(row | {"fits": {name: asdict(made) for name, made in fits.items()}})
        print(row, {name: round(made.products) for name, made in fits.items()}, flush=True)
    return found


def _matrix(problem: ClassProblem, width: float | None, workers: Any) -> Any:
    """Keep the RBF kernel matrix, or the dot products of sparse rows."""
    from labelweave.features import FeatureMatrix, LinearKernel
    from labelweave.features.gram import StoredGram
    from labelweave.features.gram.sources import KernelSource

    if width is not None:
        return kernel_matrix(problem, width, workers)
    source = KernelSource(LinearKernel(), FeatureMatrix(problem.X))
    return StoredGram.from_source(source, 0.0, np.float64, workers)


def _ways(ranks: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Give the options of a fit by what it is called in the tables."""
    from labelweave.solvers.symmetrized_gradients import SymmetrizedGradients

    limit = _PAPER_ITERATIONS
    ways: dict[str, Any] = {
        f"(5), {limit} always": SymmetrizedGradients(limit, diagonal=False, reduction=0.0),
        f"(5) diagonal, {limit} always": SymmetrizedGradients(limit, reduction=0.0),
        "(5)": SymmetrizedGradients(limit, diagonal=False),
        "(5) diagonal": SymmetrizedGradients(limit),
        "function space": None,
    }
    options = {name: {"directions": directions, "rank": 0} for name, directions in ways.items()}
    return options | {f"spectral {rank}": {"rank": rank} for rank in ranks}


def _table(rows: Sequence[dict[str, Any]], measure: str, form: str) -> list[str]:
    """Write a line for each model; what did not reach the gap is in brackets."""
    names = list(rows[0]["fits"])
    columns = ["problem", "model", "scale", "width", *names]
    lines = []
    for row in rows:
        width = "linear" if row["width"] is None else f"{row['width']:g}"
        head = [row["problem"], row["model"], f"{row['scale']:g}", width]
        cells = [_cell(row["fits"][name], measure, form) for name in names]
        lines.append([*head, *cells])
    return markdown(columns, lines)


def _cell(made: dict[str, Any], measure: str, form: str) -> str:
    text = f"{made[measure]:.{form}}"
    return text if made["status"] == "converged" else f"({text})"


if __name__ == "__main__":
    main()
