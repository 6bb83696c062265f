"""The plan of an automatic fit: which members, and how large, by the data's shape and the time budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2

from labelweave.features import FeatureMatrix
from labelweave.labels import LabelMatrix

MEMBERS = ("linear", "max-margin", "rbf", "forest", "rbf+forest")

_FOLDS = 5
_TREES, _FEWEST_TREES, _GROWING = 500, 100, 12.0  # the last: seconds, of all trees of many rows
_PIVOTS = 2000
_PIVOT_NUMBERS = 200_000_000  # of a factor, 1.6 GB
_TREE_NUMBERS = 100_000_000  # features of the dense array for trees, 400 MB
ROWS_FOR_WIDTH, _LABELS_FOR_WIDTH, ROWS_FOR_SCALING = 1500, 100, 1000
ROWS_FOR_TRIAL, PIVOTS_FOR_TRIAL, MOST_TARGETS = 2000, 500, 16  # of a max-margin model; of trees
# the cost model: operations per second of one typical core, so that every machine makes the same plan
_MULTIPLICATIONS = 1e10
_SPECTRUM, _SOLUTIONS = 2.0, 0.75  # of an eigendecomposition, of fits of all penalties: cubes of rows
_WIDTHS, _SPLITS = 4, 1.6e9  # candidate widths; targets per second that growing trees adds
_LEAVES, _LEAF_LABELS = 1e-6, 3e-9  # seconds per row and tree to find leaves; per label, to look up theirs
_SHARED = 1e-9  # seconds per row, pivot and tree, to count the trees where both share a leaf
_MARGINS, _WEIGHTED_MARGINS = 4, 2  # values of C, and with balanced classes for rare labels
_SWEEPS, _LOOKS = 40, 20  # of coordinate ascent over the rows; other operations, in numbers of a row
ROWS_TO_CROSS_FIT = 5000  # with more, the bias of fitting a few parameters is negligible
_PENALTIES, _ROUNDS = 5, 20  # of ridge regressions; of conjugate gradients where labels are missing
_ENTRIES, _ENTRIES_CROSSED = 5e-6, 1.5e-5  # seconds per row and label, to combine members
_USUAL_SECONDS = 300.0
RARE = 0.01  # of the rows
_START, _TREE = 0.6, 2e-4  # seconds of the smallest fit, and of one tree of few rows
_SMALLEST, MOST_FOLDS = 5e-3, 10  # seconds of a max-margin model of few rows; folds to combine members by


@dataclass(frozen=True)
class Plan:
    """What is fitted, and the predicted seconds.

    members: their names, in the order in which they are fitted.
    seconds: by the cost model, without estimators passed by the user.
    """

    members: tuple[str, ...]
    trees: int
    pivots: int
    folds: int
    seconds: float

    def steps(self) -> int:
        ridges = sum(name != "forest" for name in self.members)  # and the user's estimators
        has_width = any(name.startswith("rbf") for name in self.members)
        has_trees = any(name.endswith("forest") for name in self.members)
        return ridges * (self.folds + 1) + has_trees * self.folds + has_width


@dataclass(frozen=True)
class Shape:
    """The shape of the data: rows, features, labels, and the number of stored features per row.

    Methods ``of_...`` predict the seconds of parts of a plan.

    missing: the share of unobserved labels.
    folds: the number of parts of the rows, each scored by fits to the others.
    has_rare: whether some labels are rare, which least squares and trees fit poorly.
    """

    n: int
    d: int
    labels: int
    filled: float
    missing: float = 0.0
    folds: int = _FOLDS
    has_rare: bool = False

    @classmethod
    def of_data(cls, features: FeatureMatrix, labels: LabelMatrix, folds: int = _FOLDS) -> Shape:
        n, d = features.shape
        filled = features.data.nnz / n if features.is_sparse else float(d)
        seen, counts = float(labels.observed_counts().sum()), labels.positive_counts()
        has_rare = bool(((counts > 0) & (counts < RARE * n)).any())
        return cls(n, d, labels.n_labels, filled, 1.0 - seen / max(1, n * labels.n_labels), folds, has_rare)

    @property
    def is_sparse(self) -> bool:
        """Whether most features of a row are zero, as in texts."""
        return self.filled < self.d

    def of_ridge(self, pivots: int) -> float:
        m, fits = min(self.n, pivots), float(_PENALTIES * self.labels)
        work, shared = _SOLUTIONS * m**3 + self.n * m * (0.5 * self.filled + 0.75 * fits), 0.0
        if self.n > m:  # folds share a factor
            work = _SOLUTIONS * m**3 + self.n * m * self.labels
            shared = self.n * m * (0.5 * self.filled + 1.5 * m)
        if self.missing > 0:  # imputed, by one system per label or by rounds of products
            work += _SPECTRUM * m**3 + fits * (
                2.0 * self.n * m * _ROUNDS if self.n > m else (self.missing * m) ** 3 / 3.0
            )
        return ((self.folds + 1) * work + shared) / _MULTIPLICATIONS

    def of_width(self, pivots: int) -> float:
        m = min(self.n, pivots, ROWS_FOR_WIDTH)
        return (
            _WIDTHS
            * (_SPECTRUM * m**3 + m**2 * (self.filled + 2 * _PENALTIES * min(self.labels, _LABELS_FOR_WIDTH)))
            / _MULTIPLICATIONS
        )

    def _of_growing(self) -> float:
        """Predict the seconds that one tree takes to grow."""
        splits = self.n * log2(max(2, self.n)) * self.d**0.5 * (3 + min(self.labels, MOST_TARGETS))
        return _TREE + float(splits) / _SPLITS

    def most_trees(self) -> int:
        return max(_FEWEST_TREES, min(_TREES, int(_GROWING / self._of_growing())))

    def of_forest(self, trees: int) -> float:
        return trees * (self._of_growing() + self.n * (_LEAVES + _LEAF_LABELS * self.labels))

    def of_trial(self) -> float:
        labels, folds = min(self.labels, MOST_TARGETS), min(self.folds, MOST_FOLDS)
        some = replace(self, n=min(self.n, ROWS_FOR_TRIAL), labels=labels, folds=folds)
        return some.of_ridge(PIVOTS_FOR_TRIAL) + some.of_width(PIVOTS_FOR_TRIAL) + some.of_max_margin()

    def of_max_margin(self) -> float:
        margins = _MARGINS + _WEIGHTED_MARGINS * self.has_rare
        fits = self.folds + margins if self.n > ROWS_TO_CROSS_FIT else self.folds * margins + 1
        work = _SWEEPS * self.n * self.labels * (self.filled + _LOOKS) / _MULTIPLICATIONS
        return fits * (_SMALLEST + work)

    def of(self, plan: Plan) -> float:
        m, entries = min(self.n, ROWS_FOR_SCALING), self.n * self.labels
        seconds = (
            3 * (_SPECTRUM * m**3 + m**2 * (self.filled + 26 * min(self.labels, 256))) / _MULTIPLICATIONS
        )
        seconds += _START + entries * (_ENTRIES if self.n > ROWS_TO_CROSS_FIT else _ENTRIES_CROSSED)
        ridges = sum(name in MEMBERS and name not in ("forest", "max-margin") for name in plan.members)
        seconds += ridges * self.of_ridge(plan.pivots)
        if any(name.startswith("rbf") for name in plan.members):
            seconds += self.of_width(plan.pivots)
        if "max-margin" in plan.members:
            seconds += self.of_max_margin()
        if "rbf+forest" in plan.members and self.n > plan.pivots:
            seconds += 2 * _SHARED * self.n * plan.pivots * plan.trees
        if any(name.endswith("forest") for name in plan.members):
            seconds += self.of_forest(plan.trees)
        return seconds


def make_plan(
    shape: Shape,
    members: tuple[str, ...] | None,
    time_budget: float | None,
    time_limit: float | None = None,
    *,
    has_max_margin: bool = True,
) -> Plan:
    """Choose what is fitted: the whole plan if there is time, else a smaller one, step by step.

    members: names of those to fit; None for all that suit the data, fewer if there is little time.
    time_budget: seconds; None for 300.  The cheapest plan is used if no plan fits the budget.
    time_limit: an upper limit in seconds; the cheapest member comes first, as later ones may be incomplete.
    has_max_margin: False if that member, after a trial, does not pay.
    """
    is_given = members is not None
    if members is None:
        is_large = shape.n * shape.d > _TREE_NUMBERS
        linear = "linear" if is_large and not shape.is_sparse else "max-margin"
        members = (linear, "rbf")
        if not is_large:
            forests = "rbf", "forest", *(["rbf+forest"] if shape.n <= _PIVOTS else [])
            members = (linear, *forests) if shape.is_sparse else (*forests, linear)
        members = tuple(name for name in members if name != "max-margin" or has_max_margin)
    fewer, fewest = (members, members) if is_given else (members[:2], members[:1])
    pivots = max(100, min(_PIVOTS, _PIVOT_NUMBERS // max(1, shape.n)))
    trees = shape.most_trees()
    fewer_trees = max(_FEWEST_TREES, trees // 3)
    sizes = [
        (members, trees, pivots),
        (members, fewer_trees, pivots),
        (members, fewer_trees, 1000),
        (fewer, fewer_trees, 1000),
        (fewer, _FEWEST_TREES, 500),
        (fewest, _FEWEST_TREES, 500),
        (fewest, _FEWEST_TREES, 200),
    ]
    smaller = [Plan(names, trees, min(pivots, most), shape.folds, 0.0) for names, trees, most in sizes]
    plans = [replace(plan, seconds=shape.of(plan)) for plan in smaller]
    most = _USUAL_SECONDS if time_budget is None else time_budget
    most = most if time_limit is None else min(most, time_limit)
    found = next((plan for plan in plans if plan.seconds <= most), plans[-1])
    if not has_max_margin:
        found = replace(found, seconds=found.seconds + shape.of_trial())
    if time_limit is None:
        return found
    costs = {name: shape.of(replace(found, members=(name,))) for name in found.members}
    own = [name for name in found.members if name not in MEMBERS]  # of unknown cost
    return replace(found, members=(*sorted({*costs} - {*own}, key=lambda name: (costs[name], name)), *own))
