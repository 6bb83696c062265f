"""Fits of arrays of PyTorch or CuPy by the estimators, compared with NumPy and with peers on the same device.

    SCIPY_ARRAY_API=1 python -m benchmarks.device_fits --arrays numpy cupy torch:cuda --jobs 16
    SCIPY_ARRAY_API=1 python -m benchmarks.device_fits --arrays numpy array_api_strict torch:cpu --rows 300

Synthetic rows, by default 8,000, of 30 features: max-margin models of 100 labels with the RBF kernel to a gap
of 1e-3, for independent and for coupled labels; kernel logistic with one of ten classes per row; five rounds
of a low-rank model of rank 50 with the logistic loss, on 500 more features.  Max-margin models to a gap of
1e-3 of attributes of animals with the RBF kernel, independent and coupled labels, and of synthetic embeddings
with the linear kernel; kernel logistic with learned width on satimage.

Peers: SVC of cuML, a machine per label, and its logistic regression; scikit-learn's ridge regression and LDA
with array API dispatch; L-BFGS of PyTorch on the squared hinge with a ridge penalty.  The second of two fits
counts, or the first if it takes more than 20 seconds.  "difference" is that of the scores of 500 training
rows from the fit of the first arrays, relative to their largest.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from sklearn import clone, config_context
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

import labelweave as lw
from benchmarks.frame import RESULTS, RecordedRuns, command, flag, quiet, several
from benchmarks.problems import load_animals, load_class_problem
from labelweave.foundation.arrays.linear_algebra import to_numpy

_MADE = ("independent", "coupled", "softmax", "low rank")
_CASES = (*_MADE, "animals", "animals, coupled", "satimage", "embeddings")
_ANIMALS, _EMBEDDINGS = 12_000, (100_000, 768, 500)
_TOL, _LONG = 1e-3, 20.0  # the gap of max-margin fits; seconds


def problem(case: str, n_rows: int | None) -> tuple[Any, Any]:
    """Return rows, and labels or classes."""
    if case in _MADE:
        return _made(case, n_rows or 8000)
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


def _made(case: str, n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 30))
    scores = np.tanh(X @ random.normal(size=(30, 40)) / 3) @ random.normal(size=(40, 100))
    if case == "softmax":
        return X, (scores[:, :10] + random.gumbel(size=(n, 10))).argmax(axis=1)
    Y = (scores + random.normal(size=scores.shape) > 2).astype(np.int64)
    return np.hstack([X, random.normal(size=(n, 500))]) if case == "low rank" else X, Y


def models(case: str, y: Any, jobs: int) -> dict[str, Any]:
    """Return labelweave's model of a case, and peers with array API dispatch."""
    peers: dict[str, Any] = {}
    if case in ("softmax", "satimage"):
        own = lw.KernelLogisticClassifier(n_jobs=jobs)
        if case == "softmax":
            own.set_params(gamma=0.02, scale=1.0, hyperparameters="fixed", tol=1e-6)
        peers = {} if case == "softmax" else {"scikit-learn LDA": LinearDiscriminantAnalysis()}
    elif case == "low rank":
        own = lw.LowRankClassifier(50, "log_loss", max_iter=5, tol=1e-9, n_jobs=jobs)
    elif case == "embeddings":
        own = lw.MaxMarginClassifier(tol=_TOL, n_jobs=jobs)
        peers = {"scikit-learn ridge": Ridge(solver="svd")}
    else:
        coupled = lw.LabelCovariance.from_labels(lw.LabelMatrix(y)).shrink(0.5) if "coupled" in case else None
        own = lw.MaxMarginClassifier(kernel="rbf", label_covariance=coupled, tol=_TOL, n_jobs=jobs)
        own.set_params(gamma=0.02 if case in _MADE else own.gamma)
    return {"labelweave": own} | peers


def fits(case: str, make: Callable[[Any], Any], X: Any, y: Any, jobs: int) -> dict[str, Callable[[], Any]]:
    """Return what fits each program to arrays of a library."""
    there, targets = make(X), make(y)
    library = type(there).__module__.partition(".")[0]
    found: dict[str, Callable[[], Any]] = {}
    for name, model in models(case, y, jobs).items():
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


def timed(fit: Callable[[], Any], arrays: str) -> tuple[Any, dict[str, Any]]:
    """Time a fit, with what the device has not done when it returns."""
    for turn in range(2):
        begin = time.perf_counter()
        with quiet():  # low-rank fits have five rounds
            model = fit()
        if "cuda" in arrays:
            import_module("torch").cuda.synchronize()
        elif arrays == "cupy":
            import_module("cupy").cuda.Device().synchronize()
        seconds = time.perf_counter() - begin
        if turn == 0 and seconds > _LONG:
            break
    gap, rounds = (getattr(model, f"{name}_", None) for name in ("duality_gap", "n_iter"))
    return model, {"seconds": seconds, "gap": gap, "rounds": rounds}


def _scores(model: Any, X: Any) -> Any:
    score = getattr(model, "decision_function", None) or model.predict_proba
    return np.asarray(to_numpy(score(X)))


def maker(name: str) -> Callable[[Any], Any]:
    """Return how NumPy's arrays are moved to a library, and to its device after a colon."""
    module, _, device = name.partition(":")
    try:
        library = import_module(module)
    except ImportError:
        print(f"{module} is not installed; install it, or name another library.", file=sys.stderr)
        raise SystemExit(2) from None
    return partial(library.asarray, device=device) if device else library.asarray


def accelerator() -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    words = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def table(runs: list[dict[str, Any]]) -> str:
    lines = [f"{'case':18}{'program':22}{'arrays':18}{'rows':>9}{'seconds':>9}{'gap':>10}  difference"]
    for run in runs:
        gap, apart = ("" if not run.get(name) else f"{run[name]:.1e}" for name in ("gap", "difference"))
        sizes = f"{run['rows']:9,}{run['seconds']:9.2f}{gap:>10}  {apart}".rstrip()
        lines.append(f"{run['case']:18}{run['program']:22}{run['arrays']:18}{sizes}")
    return "\n".join(lines)


@command(
    arrays=flag(["numpy", "torch:cuda"], "modules with asarray, such as cupy, and devices"),
    cases=several(_CASES),
    rows=flag(None, "the first rows of each problem; all by default", type=int),
    jobs=flag(1, "threads of NumPy"),
    records=RESULTS / "device_fits.json",
)
def main(given: Any) -> None:
    record = RecordedRuns(given, accelerator=accelerator())
    makers = {name: maker(name) for name in given.arrays} if record.measures else {}
    first: dict[str, Any] = {}  # scores by case
    for case, arrays in product(given.cases, makers):
        X, y = problem(case, given.rows)
        with config_context(array_api_dispatch=True):
            for program, fit in fits(case, makers[arrays], X, y, given.jobs).items():
                of = {"case": case, "program": program, "arrays": arrays, "rows": len(X), "jobs": given.jobs}
                try:
                    if record.wants(of):
                        model, found = timed(fit, arrays)
                        if program == "labelweave":
                            scores = _scores(model, makers[arrays](X[:500]))
                            own = first.setdefault(case, scores)
                            found["difference"] = float(abs(own - scores).max() / abs(own).max())
                        record.add(of, found)
                except Exception as error:  # of one program; the others go on
                    print(f"{of}: {type(error).__name__}: {error}", file=sys.stderr)
    record.show(table(record.runs))
