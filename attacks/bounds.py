"""Run every compiled loop with Numba's bounds checks, on short problems.

    make boundscheck
    python -m attacks.bounds --compile    # only fill the usual cache, without checks, before ``make test``

The checks need a cache of their own, since cached code is not compiled again.  An index out of range raises
IndexError.  Loops that did not run count as failures.  The few steps written in LLVM code by
``loops/vector_code.py`` have no such checks.
"""

import importlib
import itertools
import multiprocessing
import pkgutil
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
import scipy.sparse as sp
from benchmarks.frame import command, flag
from numba.core.registry import CPUDispatcher

import labelweave as lw
import labelweave.postprocessing.map as map_inference
from attacks.world import World
from labelweave import LabelCovariance, noise, postprocessing, splits
from labelweave.foundation import loops as compiled
from labelweave.foundation.loops.sparse_products import WIDTH, cut_rows, multiply_table, sample_dots

_PROCESSES = 2  # compilation takes nearly all of the time


def every_estimator(world: World) -> None:
    X = sp.csr_array(world.X)
    for model in world.estimators().values():
        model.fit(X, world.Y).predict(X)
        model.fit(world.X.astype(np.float32), world.Y).predict(world.X)


def coupled_margins(world: World) -> None:
    """Fit the hinge loss with coupled labels, by every solver."""
    X, random = sp.csr_array(world.X), np.random.default_rng(0)
    root = random.normal(size=(4, 4))
    for covariance in (root @ root.T + np.eye(4), LabelCovariance.low_rank(world.F, 1.0)):
        linear = lw.MaxMarginClassifier(label_covariance=covariance, solver="coordinate_ascent", tol=1e-2)
        linear.fit(X, world.Y)
        for solver in ("block_ascent", "alternating_directions"):
            model = lw.MaxMarginClassifier(kernel="rbf", label_covariance=covariance, solver=solver, tol=1e-2)
            model.fit(X, world.Y)
    lw.MaxMarginClassifier(kernel="rbf", solver="working_set", tol=1e-2).fit(X, world.Y)
    many, shared = random.random((14, 4200)) < 0.01, LabelCovariance.low_rank(np.ones((4200, 1)), 1.0)
    wide = lw.MaxMarginClassifier(label_covariance=shared, solver="coordinate_ascent", tol=0.5, max_iter=1)
    wide.fit(X, sp.csr_array(many.astype(int)))


def sparse_weights(world: World) -> None:
    """Prune weights, and find the best labels with the remaining ones."""
    X = sp.csr_array(world.X)
    for prune, tol in (("certified", 0.1), (0.1, 1e-2), (0.1, 1e-4)):
        model = lw.MaxMarginClassifier(prune=prune, tol=tol).fit(X, world.Y)
        model.predict_top(X, 2)
        model.decision_function(X)
        model.coef_.sum()


def missing_labels(world: World) -> None:
    random = np.random.default_rng(0)
    for share, precision in ((0.3, "float64"), (0.3, "float32"), (0.8, "float64")):
        Y = np.where(random.random(world.Y.shape) < share, world.Y, np.nan)
        Y[:2] = world.Y[:2]
        for loss in ("squared_error", "log_loss", "squared_hinge"):
            model = lw.LowRankClassifier(2, loss, dtype=precision, max_iter=3)
            model.fit(sp.csr_array(world.X), Y).predict(world.X)
        lw.LabelGraphClassifier(graph=[(0, 1), (1, 2)], max_iter=5, tol=0.1).fit(world.X, Y)


def label_graphs(world: World, n_labels: int = 9) -> None:
    random = np.random.default_rng(0)
    Y = (random.random((14, n_labels)) < 0.4).astype(int)
    short: dict[str, Any] = {"max_iter": 5, "tol": 0.1}
    for options in (
        {"solver": "proximal", "graph": "full", "exact_width": 3},
        {"solver": "proximal", "graph": lw.GraphGrowth(max_rounds=2)},
        {"graph": "full", "inference": "message_passing"}, {"graph": "chow-liu"},
        {"graph": "chow-liu", "loss": "f1"}, {"graph": "full", "loss": "subset"},
        {"graph": lw.GraphGrowth(clique_size=3, max_rounds=4, graph_tol=0.0, cliques_per_round=2)},
    ):  # fmt: skip
        model = lw.LabelGraphClassifier(**short, **options).fit(world.X, Y)
        model.predict_map(world.X)
        model.decision_function(world.X)


def best_labelings(world: World, n_rows: int = 20) -> None:
    random = np.random.default_rng(0)
    for n_labels, size, count in ((12, 2, 40), (12, 3, 30), (30, 2, 60)):
        cliques = {tuple(sorted(random.choice(n_labels, size, replace=False).tolist())) for _ in range(count)}
        graph = lw.CliqueGraph(n_labels, sorted(cliques))
        unary = random.normal(size=(n_rows, n_labels))
        tables = 2.0 * random.normal(size=(n_rows, int(graph.table_starts[-1])))
        for width in (0, 4, 12):
            inference = postprocessing.MapInference(graph, exact_width=width)
            inference.solve(unary, tables)
            clamp = random.choice([-1, -1, 0, 1], size=unary.shape).astype(np.int8)
            inference.solve(unary, tables, clamp=clamp)


def hard_labelings(world: World, n_labels: int = 8) -> None:
    """Search graphs that are wide and on which message passing decides nothing, fully and with few nodes."""
    random = np.random.default_rng(0)
    pairs, triples = (list(itertools.combinations(range(n_labels), size)) for size in (2, 3))
    for cliques in (pairs, [*pairs, *triples[::4]]):
        graph = lw.CliqueGraph(n_labels, cliques)
        unary = 0.1 * random.normal(size=(2, n_labels))
        tables = random.normal(size=(2, int(graph.table_starts[-1])))
        best = postprocessing.MapInference(graph, method="exact").solve(unary, tables).values
        for nodes in (1, 3, 1000):
            with patch.object(map_inference, "_RUN_WIDTH", 1):
                search = postprocessing.MapInference(graph, exact_width=0, max_nodes=nodes)
            found = search.solve(unary, tables)
            if not (found.bounds >= best - 1e-9).all() or (nodes == 1000 and not found.proven.all()):
                raise AssertionError(f"bounds {found.bounds} of {best}, with {nodes} nodes")


def products_of_tables(world: World) -> None:
    """Multiply sparse rows by tables of all widths, into new arrays and added to existing ones."""
    random = np.random.default_rng(0)
    rows = sp.csr_array(np.where(random.random((4, 9)) < 0.4, random.normal(size=(4, 9)), 0.0))
    rows = sp.vstack([rows, sp.csr_array((1, 9))]).tocsr()
    parts = rows.indptr[:-1].astype(np.int64), rows.indptr[1:].astype(np.int64)
    close = {"rtol": 1e-4, "atol": 1e-4}
    for dtype in (np.float64, np.float32):
        for panels, more in ((0, 1), (1, 0), (1, 1), (2, 1), (3, 1), (4, 0), (9, 3), (24, 3)):
            width = panels * WIDTH + more
            table, left = random.normal(size=(9, width)).astype(dtype), random.normal(size=(5, width))
            values, products = rows.data.astype(dtype), np.ones((5, width), dtype)
            for far, adds in ((False, False), (False, True), (True, True)):
                multiply_table(*parts, rows.indices, values, table, products, far, adds)
            np.testing.assert_allclose(products, 3 * (rows.astype(dtype) @ table), **close)
            dots = np.empty(rows.nnz, dtype)
            sample_dots(rows.indptr, rows.indices, left.astype(dtype), table, dots, bool(width % 2))
            np.testing.assert_allclose(dots, (left.astype(dtype) @ table.T)[rows.nonzero()], **close)


def linear_margins(world: World) -> None:
    """Fit the hinge loss, with independent and with coupled labels."""
    X = sp.csr_array(world.X)
    for covariance in (None, 0.5 * np.eye(4) + 0.5):
        model = lw.MaxMarginClassifier(label_covariance=covariance, solver="coordinate_ascent", tol=0.1)
        for rows in (X, world.X.astype(np.float32)):
            model.fit(rows, world.Y)


def label_trees(world: World) -> None:
    """Search label trees best-first, by beams and with proofs."""
    X = sp.csr_array(world.X)
    for trees, negatives, beam in (
        (1, "reached", None),
        (2, "reached", None),
        (1, "reached", 1),
        (1, "all", 1),
    ):
        options: dict[str, Any] = {"n_trees": trees, "negatives": negatives, "beam": beam}
        model = lw.LabelTreeClassifier(leaf_size=1, branching=2, **options).fit(X, world.Y)
        model.predict_top(X, 2)
        model.predict(X)
        model.decision_function(X)
        if trees == 1:
            model.predict_top(X, 2, exact=True, budget=2)
            model.shortlist_recall(X, world.Y, k=2, beam=1)


def wrong_labels(world: World) -> None:
    """Fit curves between a lower and an upper limit, with and without related labels."""
    noise.find_label_errors(world.X, world.Y, scores=world.S)


def decisions(world: World) -> None:
    for objective in ("example_f1", "macro_f1"):
        postprocessing.choose_thresholds(world.Y, world.S, objective)
    postprocessing.calibrate_labels(world.Y, world.S)
    postprocessing.expected_f1_sizes(world.P)
    table = sp.csr_array(world.X)
    cut_rows(table.indptr.astype(np.int64), table.indices, 2, np.empty((4, len(world.X)), np.int64))
    for order in (1, 2):
        splitter = splits.IterativeStratifiedKFold(2, order=order, shuffle=True, random_state=0)
        list(splitter.split(world.X, world.Y))
    lw.AutoLabelClassifier(members=["rbf+forest"]).fit(world.X, world.Y).predict(world.X)


def hierarchies(world: World) -> None:
    """Make scores consistent in graphs with several parents per node, for more and less ordered scores."""
    random = np.random.default_rng(0)
    for size in (1, 2, 40):
        pairs = [(f"n{up}", f"n{k}") for k in range(1, size) for up in {*random.integers(0, k, 2).tolist()}]
        graph = lw.Taxonomy(pairs, nodes=[f"n{k}" for k in range(size)])
        for scores in (random.normal(size=(5, size)), np.sort(random.random((5, size)), axis=1)):
            for how in ("max", "projection"):
                postprocessing.enforce_hierarchy(scores, graph, graph.nodes, how)


WRITTEN: tuple[Callable[[World], None], ...] = (products_of_tables, linear_margins)
"""Those whose loops have steps that are written in LLVM code while they are compiled."""
PROBLEMS: tuple[Callable[[World], None], ...] = (
    every_estimator, coupled_margins, sparse_weights, missing_labels, label_graphs, best_labelings,
    hard_labelings, products_of_tables, linear_margins, label_trees, wrong_labels, decisions, hierarchies,
)  # fmt: skip


def loops() -> Iterator[tuple[str, CPUDispatcher]]:
    """List the compiled loops; loops inlined into their callers are checked there."""
    for module in pkgutil.walk_packages(compiled.__path__, compiled.__name__ + "."):
        for name, found in vars(importlib.import_module(module.name)).items():
            is_here = isinstance(found, CPUDispatcher) and found.py_func.__module__ == module.name
            if is_here and found.targetoptions.get("inline") != "always":
                yield f"{module.name}.{name}", found


def has_run(loop: CPUDispatcher) -> bool:
    """Return whether a loop was compiled, in this process or in the one that filled the cache."""
    written = Path(numba.config.CACHE_DIR).rglob(f"*.{loop.py_func.__qualname__}-*.nbi")
    return bool(loop.overloads) or any(written)


def _run(number: int, worlds: int) -> float:
    """Run one of the problems; return the seconds, mostly of compilation."""
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    for world in range(worlds):
        PROBLEMS[number](World(world))
    return time.perf_counter() - begin


def run_all(worlds: int, said: str) -> None:
    with ProcessPoolExecutor(_PROCESSES, multiprocessing.get_context("spawn")) as pool:
        found = pool.map(_run, range(len(PROBLEMS)), itertools.repeat(worlds))
        for problem, seconds in zip(PROBLEMS, found, strict=True):
            print(f"{problem.__name__}: {seconds:.0f} s, {said}", flush=True)


@command(compile=flag(False, "fill the usual cache, without checks"))
def main(given: Any) -> None:
    if given.compile:
        run_all(1, "its loops are compiled")
        return
    if not (numba.config.BOUNDSCHECK and numba.config.CACHE_DIR):
        raise SystemExit("Set NUMBA_BOUNDSCHECK=1 and NUMBA_CACHE_DIR, as make boundscheck does.")
    run_all(3, "no index out of range")
    found = dict(loops())
    missed = [name for name, loop in found.items() if not has_run(loop)]
    print(f"{len(found) - len(missed)} of {len(found)} loops ran with bounds checks", *missed, sep="\n  ")
    raise SystemExit(bool(missed))
