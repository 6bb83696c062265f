"""What came after the papers, beside what is here: methods tried on their own problems, or on the data here.

zero-shot: ESZSL (Romera-Paredes and Torr, "An embarrassingly simple approach to zero-shot learning", ICML
2015) on Animals with Attributes, under the protocol of ``benchmarks.papers.zero_shot_awa``: its two penalties
and the width of the kernel are chosen on left-out training classes.  It gives classes; the attributes of the
class of highest score are its Hamming loss.

leave-one-out: hyper-parameters of kernel logistic models (a width and a scale for all labels) by the
approximate leave-one-out likelihood of Rad and Maleki ("A scalable estimate of the out-of-sample prediction
error via approximate leave-one-out cross-validation", JRSS B 2020), one fit a point of the grid, and by one
random partition into five folds, five fits: negative log likelihood of the test rows, a label and row.

nystrom: the preconditioner of Newton's method from uniformly drawn landmarks, as in Marteau-Ferey, Bach and
Rudi ("Globally convergent Newton methods for ill-conditioned generalized self-concordant losses", NeurIPS
2019), in place of leading eigenvectors, of the same rank: products with the kernel matrix in a whole fit,
under the kernel's width and the prior's scale.

forward: labels flipped at known rates a (missed) and b (false), as in ``benchmarks.label_errors``, with 1,000
training rows: the logistic model of what was recorded, ``P(1) = b + c p`` with ``c = 1 - a - b`` and p the
logistic function of the score ("forward correction", Patrini et al., "Making deep neural networks robust to
label noise", CVPR 2017), beside ``flip_rates`` (backward) and no correction.  The second derivative of the
loss of a recorded 1, ``c p (1 - p) (c p^2 - b (1 - 2 p)) / (b + c p)^2``, is negative where p is small: the
loss is not convex, its stationary points have no certificate, and Newton steps have the curvature
``p (1 - p)`` of expectation maximisation.  Every figure is that of the scale, of four, that is best for it on
test rows.

marginals: likelihood training of a label graph whose states can all be listed (six labels: scene, emotions),
``P(y | x) ~ exp(sum_l y_l w_l . x + sum_lm v_lm y_l y_m)``, all pairs or none, the penalty of the least log
loss on a fifth of the training rows; beside it ``CalibratedLabelClassifier(LabelGraphClassifier())``, which
makes probabilities of max-marginals.  On test rows: log loss of the marginals, micro-F1 of those above 1/2,
and the share of rows whose likeliest labeling is right.

f-margins: a structured support vector machine whose loss is 1 - F1 of a row's label set, beside
``MaxMarginClassifier`` with and without ``threshold="example_f1"`` (``benchmarks.papers.f_margins``).

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.later_methods --parts zero-shot``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import average_precision_score
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.frame import RESULTS, read_options, several
from benchmarks.needed_data import needs_data
from benchmarks.papers import f_margins
from benchmarks.problems import DEFAULT_DATA, read_parts
from benchmarks.recorded_runs import RecordedRuns
from labelweave.metrics import f1_score
from labelweave.problems.losses.entry_losses import LogisticEntryLoss

_DRAWS, _FLIP_DRAWS = 5, 2
_PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_SCALES = (0.3, 1.0, 3.0, 10.0, 30.0)
_ROWS = 300
_JOINT_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
_FLIP_ROWS, _FLIP_TEST, _FLIP_SCALES, _FLIP_CUTS = (
    1000,
    2000,
    (1.0, 3.0, 10.0, 30.0),
    (0.1, 0.15, 0.2, 0.3, 0.4),
)

Run = dict[str, Any]
Figures = dict[str, dict[str, Any]]  # by method, measures: numbers, or lists of one a draw


def _zero_shot(_: str) -> Figures:
    from benchmarks.papers.animals import held_out_classes, read_animals, sample_training_rows, unseen
    from benchmarks.papers.distances import median_distance

    animals = read_animals()
    figures = []
    for seed in range(_DRAWS):
        rows = sample_training_rows(animals, seed)
        X, classes = animals.X[rows], animals.classes[rows]
        pairs = [
            (width / median_distance(X), *both) for width, *both in product(_WIDTHS, _PENALTIES, _PENALTIES)
        ]
        right, all_signatures = np.zeros(len(pairs)), animals.signatures
        for held in held_out_classes(animals, classes, seed):
            kept, truth = ~held.rows, all_signatures[classes[held.rows]]
            for place, pair in enumerate(pairs):
                attributes = _eszsl(pair, X[kept], classes[kept], all_signatures, X[held.rows])
                right[place] += (_nearest(attributes, held.signatures) == truth).all(axis=1).sum()
        known = unseen(animals, animals.classes_test, animals.classes_test)
        attributes = _eszsl(pairs[int(right.argmax())], X, classes, all_signatures, animals.X_test)
        wrong = _nearest(attributes, known.signatures) != all_signatures[animals.classes_test]
        figures.append((float(100 * wrong.mean()), float(100 * (~wrong.any(axis=1)).mean())))
    hamming, right_classes = zip(*figures, strict=True)
    return {"ESZSL": {"wrong attributes %": list(hamming), "right classes %": list(right_classes)}}


def _nearest(attributes: Any, signatures: Any) -> Any:
    """Give the signature of highest score for every row of attributes."""
    return signatures[(attributes @ signatures.T).argmax(axis=1)]


def _eszsl(pair: tuple[float, ...], X: Any, classes: Any, signatures: Any, X_new: Any) -> Any:
    """Score attributes: ``k(x) (K K + c I)^-1 K Y S^T (S S^T + d I)^-1``, Y signs of classes."""
    gamma, of_rows, of_signatures = pair
    present, K = np.unique(classes), rbf_kernel(X, gamma=gamma)
    S, Y = signatures[present], 2.0 * (classes[:, None] == present) - 1.0
    left = np.linalg.solve(K @ K + of_rows * np.eye(len(K)), K @ Y @ S)
    right = np.linalg.inv(S.T @ S + of_signatures * np.eye(S.shape[1]))
    return rbf_kernel(X_new, X, gamma=gamma) @ left @ right


def _leave_one_out(name: str) -> Figures:
    X, Y, _, _ = _given_parts(name)
    losses = np.array([_chosen_losses(X, 2.0 * Y - 1.0, seed) for seed in range(_DRAWS)])
    by_folds, by_one, best, errors = losses.T.tolist()
    return {
        "five folds": {"log loss": by_folds},
        "approximate leave-one-out": {
            "log loss": by_one,
            "less folds'": (losses[:, 1] - losses[:, 0]).tolist(),
            "off exact by": errors,
        },
        "best of the grid": {"log loss": best},
    }


def _given_parts(name: str) -> tuple[Any, Any, Any, Any]:
    """Give training and test rows of a Mulan set, columns scaled by the training rows, and their labels."""
    (X, Y), (X_test, Y_test) = ((np.asarray(part.X, float), part.Y.to_dense()) for part in read_parts(name))
    X, X_test = ((one - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12) for one in (X, X_test))
    return X, Y, X_test, Y_test


def _chosen_losses(X: Any, signs: Any, seed: int) -> tuple[float, float, float, float]:
    random = np.random.default_rng(seed)
    order = random.permutation(len(X))
    size = min(_ROWS, 2 * len(X) // 3)
    train, test = order[:size], order[size:]
    folds, grid = random.permutation(size) % 5, list(product(_WIDTHS, _SCALES))
    by_folds, by_one, on_test = np.zeros(len(grid)), np.zeros(len(grid)), np.zeros(len(grid))
    for place, (width, scale) in enumerate(grid):
        K = scale * (rbf_kernel(X, X[train], gamma=width / X.shape[1]) + 1.0)
        for y, y_test in zip(signs[train].T, signs[test].T, strict=True):
            a, inverse = _fit(K[train], y)
            by_one[place] += _loss(y, _left_out(K[train] @ a, y, inverse))
            on_test[place] += _loss(y_test, K[test] @ a)
            for fold in range(5):
                kept, left = folds != fold, folds == fold
                part = K[train][:, kept]
                by_folds[place] += _loss(y[left], part[left] @ _fit(part[kept], y[kept])[0]) * left.mean()
    on_test /= signs.shape[1]
    width, scale = grid[int(by_one.argmin())]
    K = scale * (rbf_kernel(X[train], gamma=width / X.shape[1]) + 1.0)
    return on_test[by_folds.argmin()], on_test[by_one.argmin()], on_test.min(), _error(K, signs[train][:, 0])


def _fit(K: Any, y: Any) -> tuple[Any, Any]:
    """Minimise loss and half the squared norm; give dual variables and ``diag((K^-1 + W)^-1)``."""
    u = np.zeros(len(y))
    for _ in range(50):
        p = expit(u)
        w = np.maximum(p * (1 - p), 1e-10)
        target = u + ((y > 0) - p) / w
        factor = cho_factor(K + np.diag(1 / w))
        a = cho_solve(factor, target)
        new = K @ a
        if np.abs(new - u).max() < 1e-8:
            break
        u = new
    return a, np.diag(K) - np.einsum("ij,ji->i", K, cho_solve(factor, K))


def _left_out(u: Any, y: Any, inverse: Any) -> Any:
    """Take a Newton step from the whole fit to that without each row, at the row itself."""
    p = expit(u)
    return u - inverse * ((y > 0) - p) / (1 - p * (1 - p) * inverse)


def _error(K: Any, y: Any) -> float:
    """Compare with exact fits without a row, 20 of them: the largest relative error of a score."""
    a, inverse = _fit(K, y)
    approximate, errors = _left_out(K @ a, y, inverse), []
    for row in range(0, len(y), max(1, len(y) // 20)):
        kept = np.arange(len(y)) != row
        exact = K[row, kept] @ _fit(K[np.ix_(kept, kept)], y[kept])[0]
        errors.append(abs(approximate[row] - exact) / (1 + abs(exact)))
    return float(max(errors))


def _loss(y: Any, scores: Any) -> float:
    return float(np.logaddexp(0, -y * scores).mean())


def _nystrom(_: str) -> Figures:
    from unittest.mock import patch

    from benchmarks.logistic_fits import Prior, fit, kernel_matrix
    from benchmarks.logistic_problems import load_class_problem
    from labelweave.foundation.arrays import Workers
    from labelweave.problems.kernel_likelihood import KernelLikelihood
    from labelweave.problems.losses import SoftmaxLoss

    problem, leading = load_class_problem("imclef-2000"), KernelLikelihood._find_leading
    random = np.random.default_rng(0)

    def landmarks(self: Any, term: Any) -> Any:
        found = leading(self, term)  # sets the constant
        columns = random.choice(self.gram.n_rows, found.shape[1], replace=False)
        unit = np.zeros((self.gram.n_rows, len(columns)))
        unit[columns, np.arange(len(columns))] = 1.0
        return np.linalg.qr(term.gram.product(unit))[0]

    def nothing(self: Any, term: Any) -> Any:
        return leading(self, term)[:, :0]

    ways = {"landmarks": landmarks, "leading eigenvectors": leading, "no preconditioner": nothing}
    found: Figures = {name: {} for name in ways}
    with Workers(1).running() as workers:
        for (width, scale), (name, way) in product(product((1.0, 8.0), (10.0, 1000.0)), ways.items()):
            gram, counts = kernel_matrix(problem, width, workers), []
            for _ in range(_DRAWS if way is landmarks else 1):
                loss = SoftmaxLoss(problem.codes, len(problem.classes), np.ones((len(problem.codes), 1)))
                prior = Prior(scale, 1.0, problem.tree)
                with patch.object(KernelLikelihood, "_find_leading", way):
                    fitted = fit(gram, prior, loss, workers, 1e-4, classes=problem.classes)
                counts.append(fitted.products)
            found[name][f"{width:g}, {scale:g}"] = counts if len(counts) > 1 else counts[0]
    return found


class _Forward(LogisticEntryLoss):
    """The loss of what was recorded; signs are 1 and -1, curvature is that of the M step."""

    def __init__(self, missed: float, false: float) -> None:
        self.missed, self.false = missed, false

    def evaluate(self, signs: Any, scores: Any) -> tuple[Any, Any, Any]:
        p, is_recorded = expit(scores), signs > 0
        there = np.where(is_recorded, 1.0 - self.missed, self.missed) * p
        absent = np.where(is_recorded, self.false, 1.0 - self.false) * expit(-scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            value, posterior = -np.log(there + absent), there / (there + absent)
        if self.false == 0.0:  # then a recorded 1 is certain
            value = np.where(is_recorded, np.logaddexp(0.0, -scores) - np.log1p(-self.missed), value)
            posterior = np.where(is_recorded, 1.0, posterior)
        return value, p - posterior, p * expit(-scores)


def _forward(name: str) -> Figures:
    from unittest.mock import patch

    from benchmarks.label_errors import NOISES, flipped, training_rows
    from benchmarks.noisy_training import test_rows
    from labelweave.problems.losses.entry_losses import ENTRY_LOSSES

    X, Y, kept = training_rows(name, DEFAULT_DATA)
    X_test, Y_test = (table[:_FLIP_TEST] for table in test_rows(name, DEFAULT_DATA, kept))
    found: Figures = {}
    for (noise, rates), way in product(NOISES.items(), ("no correction", "backward", "forward")):
        losses = {"logistic": partial(_Forward, *rates)} if way == "forward" else {}
        told, draws = rates if way == "backward" else None, []
        for seed in range(_FLIP_DRAWS):
            rows = np.random.default_rng(seed).choice(X.shape[0], _FLIP_ROWS, replace=False)
            recorded = flipped(Y[rows], rates, seed)[0]
            with patch.dict(ENTRY_LOSSES, losses):
                draws.append(_at_best_scale(X[rows], recorded, told, X_test, Y_test))
        names = ("micro-F1", "at best cut", "precision", "log loss")
        found[f"{noise}, {way}"] = dict(zip(names, np.transpose(draws).tolist(), strict=True))
    return found


def _at_best_scale(X: Any, Y: Any, rates: Any, X_test: Any, Y_test: Any) -> Any:
    from labelweave import KernelLogisticClassifier

    seen, figures = Y_test.any(axis=0), []
    for scale in _FLIP_SCALES:
        model = KernelLogisticClassifier(
            "linear", hyperparameters="fixed", scale=scale, tol=1e-3, flip_rates=rates
        )
        P = np.clip(model.fit(X, Y).predict_proba(X_test), 1e-12, 1.0 - 1e-12)
        scores = [f1_score(Y_test, (cut < P).astype(int)) for cut in (0.5, *_FLIP_CUTS)]
        precision = average_precision_score(Y_test[:, seen], P[:, seen], average="macro")
        loss = np.mean(np.where(Y_test > 0, np.log(P), np.log1p(-P)))
        figures.append((scores[0], max(scores), precision, loss))
    return np.max(figures, axis=0) * (1, 1, 1, -1)


def _marginals(name: str) -> Figures:
    from labelweave import CalibratedLabelClassifier, LabelGraphClassifier

    X, Y, X_test, Y_test = _given_parts(name)
    held, found = np.random.default_rng(0).permutation(len(X)) < len(X) // 5, {}
    for words, has_pairs in (("likelihood, no pairs", False), ("likelihood, all pairs", True)):
        losses = [
            _label_loss(Y[held], _joint(_trained(X[~held], Y[~held], penalty, has_pairs), X[held])[0])
            for penalty in _JOINT_PENALTIES
        ]
        best = _JOINT_PENALTIES[int(np.argmin(losses))]
        found[words] = _label_figures(Y_test, *_joint(_trained(X, Y, best, has_pairs), X_test))
    graph = CalibratedLabelClassifier(LabelGraphClassifier(random_state=0)).fit(X, Y)
    best_labelings = graph.estimator_.predict_map(X_test).labels
    found["margins, calibrated"] = _label_figures(Y_test, graph.predict_proba(X_test), best_labelings)
    return found


def _trained(X: Any, Y: Any, penalty: float, has_pairs: bool) -> tuple[Any, Any]:
    """Fit label weights, of a constant too, and weights of pairs, by the likelihood of whole labelings."""
    inputs, (n, n_labels) = np.column_stack([X, np.ones(len(X))]), Y.shape
    states = np.array(list(product((0.0, 1.0), repeat=n_labels)))
    pairs = np.triu(np.ones((n_labels, n_labels)), 1) * has_pairs
    codes, together = (Y @ 2.0 ** np.arange(n_labels)[::-1]).astype(int), (states.T, states)
    seen = Y.T @ Y

    def objective(theta: Any) -> tuple[float, Any]:
        W, V = theta[: inputs.shape[1] * n_labels].reshape(-1, n_labels), theta[-(n_labels**2) :]
        V = V.reshape(n_labels, n_labels) * pairs
        energies = inputs @ W @ together[0] + np.einsum("sl,lm,sm->s", states, V, states)
        logs = energies - np.logaddexp.reduce(energies, axis=1, keepdims=True)
        P = np.exp(logs)
        of_W = inputs.T @ (P @ states - Y) + penalty * W
        of_V = ((states * P.sum(axis=0)[:, None]).T @ states - seen) * pairs + penalty * V
        value = -logs[np.arange(n), codes].sum() + penalty * (np.vdot(W, W) + np.vdot(V, V)) / 2
        return value, np.concatenate([of_W.ravel(), of_V.ravel()])

    start = np.zeros((inputs.shape[1] + n_labels) * n_labels)
    theta = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    V = theta[-(n_labels**2) :].reshape(n_labels, n_labels) * pairs
    return theta[: inputs.shape[1] * n_labels].reshape(-1, n_labels), V


def _joint(weights: tuple[Any, Any], X: Any) -> tuple[Any, Any]:
    """Give the marginals of the labels and the likeliest labelings."""
    W, V = weights
    states = np.array(list(product((0.0, 1.0), repeat=len(V))))
    energies = np.column_stack([X, np.ones(len(X))]) @ W @ states.T
    energies += np.einsum("sl,lm,sm->s", states, V, states)
    P = np.exp(energies - np.logaddexp.reduce(energies, axis=1, keepdims=True))
    return P @ states, states[energies.argmax(axis=1)]


def _label_loss(Y: Any, P: Any) -> float:
    P = np.clip(P, 1e-12, 1.0 - 1e-12)
    return float(-np.where(Y > 0, np.log(P), np.log1p(-P)).mean())


def _label_figures(Y: Any, P: Any, labelings: Any) -> dict[str, float]:
    return {
        "log loss": _label_loss(Y, P),
        "micro-F1": float(f1_score(Y, (P > 0.5).astype(int))),
        "labelings": float((np.asarray(labelings) == Y).all(axis=1).mean()),
    }


def _f_margins(name: str) -> Figures:
    return f_margins.measure(*_given_parts(name))


_PARTS: dict[str, tuple[Callable[[str], Figures], tuple[str, ...]]] = {
    "zero-shot": (_zero_shot, ("awa",)),
    "leave-one-out": (_leave_one_out, ("emotions", "scene")),
    "nystrom": (_nystrom, ("imclef-2000",)),
    "forward": (_forward, ("bibtex", "debtags")),
    "marginals": (_marginals, ("emotions", "scene")),
    "f-margins": (_f_margins, ("emotions", "scene", "yeast")),
}


@needs_data
def main() -> None:
    """Try the methods, and print the table."""
    arguments = read_options(
        __doc__, parts=several(_PARTS), records=RESULTS / "papers" / "later_methods.json"
    )
    warnings.simplefilter("ignore")
    record = RecordedRuns(arguments)
    for part in arguments.parts:
        measure, sets = _PARTS[part]
        for name in sets:
            case = {"part": part, "set": name}
            if record.wants(case):
                print(table([record.add(case, {"figures": measure(name)})]), flush=True)
    record.show(table(record.runs))


def table(runs: list[Run]) -> str:
    """Write a line a method and set, under the measures of each part; ± is the deviation over draws."""
    lines: list[str] = []
    for part in (part for part in _PARTS if any(run["part"] == part for run in runs)):
        own = [(run["set"], *one) for run in runs if run["part"] == part for one in run["figures"].items()]
        names = list(dict.fromkeys(name for *_, found in own for name in found))
        rows = [[f"  {of:12}{way}", *(_shown(found.get(name)) for name in names)] for of, way, found in own]
        widths = [2 + max(map(len, column)) for column in zip(names, *(row[1:] for row in rows), strict=True)]
        for first, *cells in ([part, *names], *rows):
            lines.append(f"{first:46}" + "".join(map(str.rjust, cells, widths)))
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    many = np.atleast_1d(value)
    digits = 1 if np.mean(many) >= 10 else 4
    spread = f" ± {many.std():.{digits}f}" if len(many) > 1 else ""
    return f"{many.mean():.{digits}f}{spread}"


if __name__ == "__main__":
    main()
