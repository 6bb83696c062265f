"""Fits of arrays of PyTorch or CuPy by the estimators, compared with NumPy and with peers on the same device.

    SCIPY_ARRAY_API=1 python -m benchmarks.device_fits --arrays torch:cuda cupy
    SCIPY_ARRAY_API=1 python -m benchmarks.device_fits --arrays numpy torch:cpu --rows 500

Max-margin models to a gap of 1e-3: attributes of animals with the RBF kernel, independent and coupled labels,
and synthetic embeddings with the linear kernel; kernel logistic with learned width on satimage.  Peers: SVC
of cuML, a machine per label, and its logistic regression; scikit-learn's ridge regression and LDA with array
API dispatch; L-BFGS of PyTorch on the squared hinge with a ridge penalty.  The second of two fits counts, or
the first if it takes more than 20 seconds.  ``--rows`` takes the first rows of each problem.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from sklearn import clone, config_context
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from benchmarks.device_arrays import accelerator, maker
from benchmarks.frame import RESULTS, RecordedRuns, command, flag, several
from benchmarks.problems import load_animals, load_class_problem
from labelweave import KernelLogisticClassifier, LabelCovariance, MaxMarginClassifier
from labelweave.labels import LabelMatrix

_CASES = ("animals", "animals, coupled", "satimage", "embeddings")
_ANIMALS, _EMBEDDINGS = 12_000, (100_000, 768, 500)
_TOL, _LONG = 1e-3, 20.0  # the gap of max-margin fits; seconds


def problem(case: str, n_rows: int | None) -> tuple[Any, Any]:
    """Return rows, and labels or classes."""
    if case == "satimage":
        read = load_class_problem("satimage")
        return read.X[:n_rows], read.codes[:n_rows]
    if case == "embeddings":
        n, d, n_labels = _EMBEDDINGS
        random = np.random.default_rng(0)
        X = random.normal(size=(min(n, n_rows or n), d)) / np.sqrt(d)
        scores = X @ random.normal(size=(d, n_labels)) + 0.5 * random.normal(size=(len(X), n_labels))
        return X, (scores > 1.0).astype(np.int64)
    X, Y = load_animals(_ANIMALS)
    return X[:n_rows], Y[:n_rows].toarray().astype(np.int64)


def models(case: str, y: Any) -> dict[str, Any]:
    """Return labelweave's model of a case, and peers with array API dispatch."""
    if case == "satimage":
        return {
            "labelweave": KernelLogisticClassifier(n_jobs=1),
            "scikit-learn LDA": LinearDiscriminantAnalysis(),
        }
    settings: dict[str, Any] = {"tol": _TOL, "n_jobs": 1}
    if case == "embeddings":
        return {"labelweave": MaxMarginClassifier(**settings), "scikit-learn ridge": Ridge(solver="svd")}
    coupled = LabelCovariance.from_labels(LabelMatrix(y)).shrink(0.5) if "coupled" in case else None
    return {"labelweave": MaxMarginClassifier(kernel="rbf", label_covariance=coupled, **settings)}


def fits(case: str, make: Callable[[Any], Any], X: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """Return what fits each program to arrays of a library."""
    there, targets = make(X), make(y)
    library = type(there).__module__.partition(".")[0]
    found: dict[str, Callable[[], Any]] = {}
    for name, model in models(case, y).items():
        labels = make(y.astype(X.dtype)) if isinstance(model, Ridge) else targets
        found[name] = lambda model=model, labels=labels: clone(model).fit(there, labels)
    if library == "torch" and case == "embeddings":
        signs = make(2.0 * y - 1.0)
        found["PyTorch L-BFGS"] = lambda: lbfgs(there, signs)
    if library == "cupy":
        found |= cuml_fits(case, there, targets, np.flatnonzero(np.ptp(y, axis=0)) if y.ndim == 2 else [])
    return found


def lbfgs(X: Any, signs: Any) -> Any:
    """Minimize the squared hinge of all labels with PyTorch's L-BFGS; return the weights."""
    torch = import_module("torch")
    weights = torch.zeros((X.shape[1], signs.shape[1]), dtype=X.dtype, device=X.device, requires_grad=True)
    search = torch.optim.LBFGS([weights], max_iter=200, tolerance_grad=1e-4, line_search_fn="strong_wolfe")

    def closure() -> Any:
        search.zero_grad()
        value = weights.square().sum() / 2 + torch.relu(1 - signs * (X @ weights)).square().sum()
        value.backward()
        return value

    search.step(closure)
    return weights.detach().cpu()


def cuml_fits(case: str, X: Any, y: Any, labels: Any) -> dict[str, Callable[[], Any]]:
    """Return cuML's fits, a machine per label that varies; none where it is not installed.

    The C of a support vector machine is twice that of a max-margin model.
    """
    try:
        svm, linear_model = import_module("cuml.svm"), import_module("cuml.linear_model")
    except ImportError:
        print("cuML is not installed; its fits are left out.", file=sys.stderr)
        return {}
    columns = [y[:, int(label)].copy() for label in labels]
    if case == "animals":
        return {"cuML SVC": lambda: [svm.SVC(C=2.0, tol=_TOL).fit(X, column) for column in columns]}
    if case == "embeddings":
        return {"cuML logistic": lambda: [linear_model.LogisticRegression().fit(X, one) for one in columns]}
    return {}


def timed(fit: Callable[[], Any], arrays: str) -> dict[str, Any]:
    """Time a fit, with what the device has not done when it returns."""
    for turn in range(2):
        begin = time.perf_counter()
        model = fit()
        if "cuda" in arrays:
            import_module("torch").cuda.synchronize()
        elif arrays == "cupy":
            import_module("cupy").cuda.Device().synchronize()
        seconds = time.perf_counter() - begin
        if turn == 0 and seconds > _LONG:
            break
    of_model = {name: getattr(model, f"{name}_", None) for name in ("duality_gap", "n_iter")}
    return {"seconds": seconds, "gap": of_model["duality_gap"], "rounds": of_model["n_iter"]}


def table(runs: list[dict[str, Any]]) -> str:
    lines = [f"{'case':18}{'program':22}{'arrays':14}{'rows':>9}{'seconds':>9}{'gap':>10}"]
    for run in runs:
        gap = "" if not isinstance(run["gap"], float) else f"{run['gap']:.1e}"
        sizes = f"{run['rows']:9,}{run['seconds']:9.2f}{gap:>10}"
        lines.append(f"{run['case']:18}{run['program']:22}{run['arrays']:14}{sizes}")
    return "\n".join(lines)


@command(
    arrays=flag(["torch:cuda"], "modules with asarray, such as numpy or cupy, and devices"),
    cases=several(_CASES),
    rows=flag(None, "the first rows of each problem; all by default", type=int),
    records=RESULTS / "device_fits.json",
)
def main(given: Any) -> None:
    record = RecordedRuns(given, accelerator=accelerator())
    makers = {name: maker(name) for name in given.arrays} if record.measures else {}
    for case, arrays in product(given.cases, makers):
        X, y = problem(case, given.rows)
        with config_context(array_api_dispatch=True):
            for program, fit in fits(case, makers[arrays], X, y).items():
                of = {"case": case, "program": program, "arrays": arrays, "rows": len(X)}
                try:
                    if record.wants(of):
                        record.add(of, timed(fit, arrays))
                except Exception as error:  # of one program; the others go on
                    print(f"{of}: {type(error).__name__}: {error}", file=sys.stderr)
    record.show(table(record.runs))
