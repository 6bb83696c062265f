"""The records of facts about a model; their fields are called as in the JSON of ``labelweave inspect``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

Plain = dict[str, Any]


@dataclass(frozen=True)
class FitFacts:
    """How a fit went; what a model has no notion of is None.

    gap: a share of the objective; NaN where there is no bound.
    gap_summary: by how much other factors could be better, of models that have some.
    """

    converged: bool | None
    status: str | None
    rounds: int
    gap: float | None
    seconds: float
    checks: int
    first_gap: float | None
    objective: float | None
    gap_summary: str | None


@dataclass(frozen=True)
class Thresholds:
    """From which scores on, or probabilities, labels are predicted.

    is_tuned: whether something else than the usual was asked for.
    """

    low: float
    high: float
    is_probability: bool
    is_tuned: bool

    @property
    def are_usual(self) -> bool:
        """Whether they are scores of 0, or probabilities of 1/2."""
        return self.low == self.high == (0.5 if self.is_probability else 0.0)

    @property
    def words(self) -> str:
        """One number, or the range where every label has its own."""
        one = self.low == self.high
        words = f"{self.low:.4g}" if one else f"one a label, from {self.low:.4g} to {self.high:.4g}"
        return f"probability {words}" if self.is_probability else words


@dataclass(frozen=True)
class LabelThresholds:
    """What the scores or probabilities of labels must exceed.

    number: which of both.
    """

    number: str
    by_label: dict[str, float]


@dataclass(frozen=True)
class FactorFacts:
    """Weights that are a product of two factors, Z = W H^T."""

    rank: int
    rank_summary: str


@dataclass(frozen=True)
class CliqueFacts:
    """Labels that are scored together."""

    labels: list[str]
    weight: float
    sign: int


@dataclass(frozen=True)
class GraphFacts:
    """A graph of labels, its cliques from the strongest on, and the rounds in which it grew."""

    summary: str
    reason: str | None
    regularization: float
    width: int
    components: int
    cliques: list[CliqueFacts]
    rounds: list[Plain]


@dataclass(frozen=True)
class ChoiceFacts:
    """A choice among ranks and regularizations by cross-validation."""

    rank: int
    regularization: float
    score: float
    scoring: str
    rule: str
    folds: int
    status: str
    pairs: list[Plain]
    summary: str


@dataclass(frozen=True)
class LearningFacts:
    """How hyper-parameters were learned; ``values`` are what they are now, in words."""

    status: str
    evaluations: int
    cross_validation_loss: float
    first_loss: float | None
    stages: int
    seconds: float
    values: str
    summary: str


@dataclass(frozen=True)
class CombinationFacts:
    """Models that were combined, and what the combination is worth on rows that none of them saw.

    members: of each its name, weight, left-out loss, seconds and words on what was chosen.
    loss: the squared error of left-out probabilities, as a share of the labels' variance.
    uncoupled_loss: the same before scores of other labels add to a label's.
    metric: the accuracy with one class a row.
    value, error: the metric on left-out rows, and its standard error; None where nothing was left out.
    """

    members: list[Plain]
    loss: float
    uncoupled_loss: float
    metric: str
    value: float | None
    error: float | None
    plan: Plain

    @property
    def lines(self) -> dict[str, str]:
        """Say what the combination is worth, and what it took, a line each."""
        least = min(one["left_out_loss"] for one in self.members)
        worth = f"loss {self.loss:.4f} of the labels' variance, the best member alone {least:.4f}"
        if self.uncoupled_loss > self.loss:
            worth += f", without what labels say of each other {self.uncoupled_loss:.4f}"
        if self.value is not None:
            worth += f"; {self.metric} {self.value:.4f}, standard error {self.error:.4f}"
        names, seconds = self.plan["members"], sum(one["seconds"] for one in self.members)
        taken = f"{len(self.members)} of {len(names)} members in {seconds:.1f} s"
        return {"left out": worth, "fit": f"{taken}, {self.plan['seconds']:.0f} s foreseen"}

    @property
    def member_lines(self) -> dict[str, str]:
        """Say of each member what came of it."""
        return {
            f"member {one['name']}": f"weight {one['weight']:.2f}, left-out loss {one['left_out_loss']:.4f}, "
            f"{one['seconds']:.1f} s: {one['words']}"
            for one in self.members
        }


@dataclass(frozen=True)
class PruningFacts:
    """Weights that are kept sparse: how many, and the relative gaps before and after the others were dropped.

    largest_gap: of a block of labels, after.
    share_kept: of the weights that were not 0.
    """

    gap_before: float
    gap: float
    largest_gap: float
    weights_before: int
    weights: int
    share_kept: float

    @property
    def summary(self) -> str:
        """One line."""
        return (
            f"{self.weights:,} of {self.weights_before:,} kept ({self.share_kept:.1%}); gap "
            f"{self.gap_before:.1e} before, {self.gap:.1e} after, of a block at most {self.largest_gap:.1e}"
        )


@dataclass(frozen=True)
class TaxonomyFacts:
    """The tree that a model predicts by."""

    nodes: int
    roots: int
    leaves: int
    summary: str


@dataclass(frozen=True)
class LayerFacts:
    """A classifier that decides on the scores of another one."""

    classifier: str
    parameters: Plain
    changed: tuple[str, ...]
    summary: str


@dataclass(frozen=True)
class ModelFacts:
    """What a fitted model is.

    parameters: numbers and words as they are, anything larger by its type and size.
    changed: the names of those that are not as by default.
    steps: what the iterations of its fit are called.
    decisions: what is around the classifier that scores, the outermost first.
    imputed: what stands for missing features, in words.
    unobserved: the labels that no training row told of.
    steps_before: the kinds of the steps of a pipeline that features go through first.
    """

    classifier: str
    parameters: Plain
    changed: tuple[str, ...]
    one_class_a_row: bool
    labels: list[str]
    features: int | None
    feature_names: bool
    kernel: str
    scaling: str | None
    support_rows: int | None
    fit: FitFacts
    steps: str
    thresholds: Thresholds | None
    decisions: list[LayerFacts]
    guarantee: str | None
    columns: Plain | None
    factors: FactorFacts | None = None
    graph: GraphFacts | None = None
    choice: ChoiceFacts | None = None
    taxonomy: TaxonomyFacts | None = None
    prior: Plain | None = None
    hyperparameters: dict[str, float] | None = None
    learning: LearningFacts | None = None
    imputed: str | None = None
    unobserved: list[str] = field(default_factory=list)
    steps_before: tuple[str, ...] = ()
    combination: CombinationFacts | None = None
    pruning: PruningFacts | None = None

    @property
    def names(self) -> list[str]:
        """The classifiers that decide, from the outside, and the one that scores."""
        return [*(layer.classifier for layer in self.decisions), self.classifier]

    @property
    def threshold(self) -> str | None:
        """From where on labels are predicted, if something else than the usual was asked for."""
        is_said = self.thresholds is not None and self.thresholds.is_tuned and self.factors is None
        return self.thresholds.words if is_said and self.thresholds is not None else None

    def to_json(self) -> Plain:
        """Give what there is as plain data."""
        found = asdict(self)
        found["steps_before"] = list(self.steps_before)
        for name in ("changed", "steps", "thresholds"):
            del found[name]
        for layer in found["decisions"]:
            del layer["changed"]
        always = ("support_rows",)
        found = {name: v for name, v in found.items() if name in always or (v is not None and v != [])}
        found |= {} if self.threshold is None else {"threshold": self.threshold}
        prior: Plain = found.pop("prior", {})
        return found | prior
