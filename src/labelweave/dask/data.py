"""The rows of a fit on the cluster: read, described, and brought into the order of solving."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import Client, Future
from scipy.sparse.csgraph import connected_components

from labelweave.dask import tasks
from labelweave.dask.chunks import neighbors
from labelweave.dask.graphs import Place
from labelweave.dask.partitions import NO_ROWS
from labelweave.dask.parts import joined_rows
from labelweave.dask.rows import (
    Counts,
    Facts,
    facts_of_features,
    itself,
    labels_of,
    read_rows,
    relabeled,
    some_rows,
    stacked_entries,
    tags_in,
    with_labels,
)
from labelweave.dask.tasks import Common
from labelweave.dask.waiting import gathered, wait_for_some
from labelweave.estimators.entry_weights import RATES_OF_CLASSES, rates_by
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import read_row_weights
from labelweave.foundation.frames import FrameForm
from labelweave.foundation.loops import WIDTH
from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.labels.flip_rates import corrected_targets
from labelweave.labels.label_names import as_text
from labelweave.labels.tags import read_tags
from labelweave.labels.targets import TargetForm, read_targets, require_observed
from labelweave.problems.traveling_margins import CONCURRENT_VISITS, in_tree_order
from labelweave.solvers.dual_coordinate_ascent import RUN

_BYTES_AN_ENTRY = 24  # of features, in both precisions and while they are joined
_BYTES_A_ROW = 256  # of a block of labels over them
_BYTES_A_LABEL = 16  # per row, if all labels are one block, or each entry has a weight
_JOINED_SHARE = 1 / 8  # of the memory budget: smaller partitions are joined if rows are in several places
_VISITED_SHARE = 1 / 2  # ... per visit, one after the other
_MOST_COUPLED = 4096  # labels with a dense covariance
_HELD_SHARE = 0.3  # of the workers' memory: above it, rows go into files
_FEWEST_VISITS, _MOST_VISITS = 16, 32  # of a block per round
_ENTRIES_A_VISIT = 2**24  # feature entries: about 50 ms for 16 labels


@dataclass(frozen=True)
class ReadData:
    """Partitions that workers have read, without empty ones.

    rows: their futures.
    form: the form of the targets.
    """

    rows: list[Future]
    facts: Sequence[Facts]
    form: TargetForm
    counts: Counts

    @property
    def n_features(self) -> int:
        return self.facts[0].n_features

    @property
    def n_rows(self) -> int:
        return sum(facts.n_rows for facts in self.facts)

    def label_blocks(self, covariance: LabelCovariance | None) -> list[Array]:
        """Return the labels of each block, frequent ones first; coupled labels are in one block."""
        order = np.argsort(-self.counts.positives, kind="stable")
        if covariance is None:
            return [order[start : start + WIDTH] for start in range(0, len(order), WIDTH)]
        if len(order) > _MOST_COUPLED:
            return [order]
        coupled = connected_components(covariance.columns(order).to_dense() != 0, directed=False)[1]
        parts = [order[coupled == number] for number in range(coupled.max() + 1)]
        few = neighbors(list(map(len, parts)), WIDTH)
        return [np.concatenate([parts[part] for part in block]) for block in few]

    def some_rows(self, client: Client, which: Array) -> ReadData:
        """Keep some rows, given by ascending numbers over all partitions."""
        ends = np.cumsum([facts.n_rows for facts in self.facts])
        own = np.split(which, np.searchsorted(which, ends[:-1]))
        kept = [number for number, places in enumerate(own) if len(places)]
        begins = ends - [facts.n_rows for facts in self.facts]
        rows = [
            client.submit(some_rows, self.rows[number], own[number] - begins[number], pure=False)
            for number in kept
        ]
        facts = [self.facts[number].of_rows(len(own[number])) for number in kept]
        form, counts = self.form, _counted(client, rows, self.form)
        if form.is_ranked and not counts.positives.all():  # a fit has only the classes of its rows
            form = read_targets(form.classes[counts.positives > 0])[1]
            counts = _counted(client, rows, form)
        return ReadData(rows, facts, form, counts)

    def joined(self, client: Client, budget: float) -> ReadData:
        """Join partitions: all, or neighbors while they are small.

        budget: megabytes of rows per worker.
        Raises ValueError if a worker cannot hold the joined rows.
        """
        groups = self.groups(budget)
        self.refuse_large(groups, megabytes_of_workers(client), budget)
        rows, facts = [], []
        for group in groups:
            parts, own = [self.rows[part] for part in group], [self.facts[part] for part in group]
            rows.append(parts[0] if len(parts) == 1 else client.submit(joined_rows, parts, pure=False))
            facts.append(Facts.joined(own))
        return replace(self, rows=rows, facts=facts)

    def refuse_large(self, groups: Sequence[Sequence[int]], limits: Sequence[float], budget: float) -> None:
        """Raise if no worker can hold a joined group of partitions; limits are megabytes of workers."""
        most = max((self.megabytes_of(group) for group in groups if len(group) > 1), default=0.0)
        limit = min(limits, default=np.inf)
        if most > limit:
            raise ParameterError(
                f"`memory_budget={budget:g}` joins {most:.0f} MB of rows on a worker, whose memory "
                f"is limited to {limit:.0f} MB; pass a `memory_budget` of a quarter of that."
            )

    def relabeled(self, client: Client, of_labels: Callable[[LabelMatrix], LabelMatrix]) -> ReadData:
        """Replace the labels by a function of the labels of each partition."""
        rows = client.map(relabeled, self.rows, of_labels=of_labels, pure=False)
        return ReadData(rows, self.facts, self.form, _counted(client, rows, self.form))

    def with_features(self, client: Client, rows: list[Future]) -> ReadData:
        """Replace the features of the same rows, and describe the new ones."""
        looks = gathered(client, client.map(facts_of_features, rows, pure=False))
        facts = [replace(fact, names=None, **look) for fact, look in zip(self.facts, looks, strict=True)]
        return ReadData(rows, facts, self.form, self.counts)

    def _megabytes(self, *, is_wide: bool) -> Array:
        a_row = _BYTES_A_ROW + (_BYTES_A_LABEL * len(self.counts.positives) if is_wide else 0)
        sizes = [_BYTES_AN_ENTRY * facts.entries + a_row * facts.n_rows for facts in self.facts]
        return 1e-6 * np.array(sizes, np.float64)

    @property
    def megabytes(self) -> float:
        """The memory of the rows."""
        return self.megabytes_of(range(len(self.facts)))

    def megabytes_of(self, parts: Sequence[int]) -> float:
        """Return the memory of the rows of some partitions."""
        return float(self._megabytes(is_wide=False)[list(parts)].sum())

    def groups(self, budget: float, *, is_wide: bool = False) -> list[list[int]]:
        """Return the groups of partitions to join: all, or neighbors while they are small.

        budget: megabytes of rows per worker.
        is_wide: whether each row has a number per label.
        """
        sizes = self._megabytes(is_wide=is_wide).tolist()
        return neighbors(sizes, budget if sum(sizes) <= budget else _JOINED_SHARE * budget)

    def places(self, groups: Sequence[Sequence[int]], budget: float) -> list[list[Sequence[int]]]:
        """Return the neighboring groups that one task visits: fewer messages if data are large."""
        own = list(map(self.megabytes_of, groups))
        most = max(_JOINED_SHARE * budget, min(_VISITED_SHARE * budget, sum(own) / _FEWEST_VISITS))
        return [[groups[number] for number in place] for place in neighbors(own, most)]

    def visits(self, places: Sequence[Sequence[Sequence[int]]], *, is_coupled: bool = False) -> list[int]:
        """Return how often a block visits the rows of each place in a round, as a function of the data only.

        Many short visits need few rounds and many messages.  18,000 rows of RCV1 in 2 partitions reach a
        gap of 1e-3 in 112 rounds with 1 visit to each, 43 with 4, 31 with 8 and 28 with 16.
        """
        parts = [[self.facts[part] for group in place for part in group] for place in places]
        entries = np.array([sum(max(1, facts.entries) for facts in place) for place in parts])
        n_rows = [sum(facts.n_rows for facts in place) for place in parts]
        most = [
            -(-rows // RUN) if len(place) == 1 else len(place)
            for rows, place in zip(n_rows, places, strict=True)
        ]
        fewest = _FEWEST_VISITS * (
            CONCURRENT_VISITS if is_coupled else 1
        )  # of which CONCURRENT_VISITS at the same time
        wanted = np.clip(entries.sum() / _ENTRIES_A_VISIT, fewest, _MOST_VISITS)
        counts = np.maximum(1, np.rint(wanted * entries / entries.sum())).astype(int)
        return [int(count) for count in np.minimum(counts, most)]


def read(
    client: Client, reader: Any, parts: Sequence[tuple[Any, Any, Any, Any]], *, is_verbose: bool = False,
    known_tags: TargetForm | None = None,
) -> ReadData:  # fmt: skip
    """Read partitions on the cluster.

    reader: an ordinary estimator, which reads rows as in a fit.
    known_tags: the form of the labels of a fitted one; other tags are ignored.
    Raises ValueError if partitions are inconsistent, or one has invalid entries.
    """
    import dask

    read_one, look_at = dask.delayed(read_rows, pure=False), dask.delayed(Facts.of, pure=False)
    read_parts = [read_one(reader, *part) for part in parts]
    futures = client.compute([*read_parts, *map(look_at, read_parts)])  # each is described when it is read
    what = "partitions read" if is_verbose else ""
    rows, facts = futures[: len(parts)], gathered(client, futures[len(parts) :], what, part="Partition")
    kept = [number for number, fact in enumerate(facts) if fact is not None]
    if not kept:
        raise ValueError(NO_ROWS)
    rows, facts = [rows[number] for number in kept], [facts[number] for number in kept]
    if any(fact.form is not None and fact.form.container == "tags" for fact in facts):
        rows, facts = _with_labels_of_all(client, [parts[number] for number in kept], rows, facts, known_tags)
    form, known = _form_of(facts), [facts.counts for facts in facts]
    if known[0] is None:
        _refuse_inner_nodes(form.classes, reader)
    counts: Counts = _counted(client, rows, form) if known[0] is None else in_tree_order(known)
    read_row_weights([facts.largest_weight for facts in facts], len(facts))
    _refuse_unobserved(counts, facts[0].label_names, is_related=reader._relates_labels)
    if not form.has_one_class:
        form = replace(form, unobserved=tuple(np.flatnonzero(counts.observed == 0).tolist()))
    return ReadData(rows, facts, form, counts)


def _with_labels_of_all(
    client: Client, parts: Sequence[tuple[Any, Any, Any, Any]], rows: Sequence[Future], facts: list[Facts],
    known: TargetForm | None,
) -> tuple[list[Future], list[Facts]]:  # fmt: skip
    """Read lists of labels again, with the labels of all partitions, or the known ones."""
    import dask

    is_listed = [fact.form is not None and fact.form.container == "tags" for fact in facts]
    is_unknown = [fact.classes is not None and len(fact.classes) == 0 for fact in facts]
    if not all(map(max, is_listed, is_unknown)):
        raise ValueError("One partition of y has lists of labels and another has none; pass one kind.")
    if any(fact.n_weighted is not None for fact in facts):
        raise ValueError(
            "entry_weight has one column per label, but y is lists of labels without columns; pass a table "
            "(labelweave.LabelMatrix.from_any(lists, names) for each partition)."
        )
    found, read_one = dask.delayed(tags_in, pure=False), dask.delayed(with_labels, pure=False)
    every = [set().union(*gathered(client, client.compute([found(part[1]) for part in parts])))]
    form, tags = read_targets(every)[1], read_tags(every)[2]
    if known is not None:
        frame = FrameForm("builtins", None if known.frame is None else known.frame.labels)
        form, tags = replace(form, classes=known.classes, frame=frame), known.classes.tolist()
    futures = client.compute(
        [read_one(part, given[1], tags, form) for part, given in zip(rows, parts, strict=True)]
    )
    return futures, gathered(client, client.map(Facts.of, futures, pure=False))


def _counted(client: Client, rows: Sequence[Future], form: TargetForm) -> Counts:
    counts: Counts = in_tree_order(gathered(client, client.map(Counts.of, rows, form=form, pure=False)))
    return counts


def corrected_by(client: Client, data: ReadData, flip_rates: Any) -> ReadData:
    """Replace labels by targets corrected for known flip rates, counted over all partitions."""
    if flip_rates is None:
        return data
    if data.form.has_one_class:
        raise ValueError(RATES_OF_CLASSES)
    names = [str(name) for name in data.form.classes]
    missed, false = rates_by(flip_rates, data.counts.n_rows, data.counts.positives, names)
    return data.relabeled(client, partial(corrected_targets, missed=missed, false=false))


def gathered_labels(client: Client, data: ReadData) -> tuple[LabelMatrix, Array]:
    """Bring the labels and weights of all rows to the client."""
    labels = gathered(client, client.map(labels_of, data.rows, form=data.form, pure=False))
    weights = gathered(client, client.map(attrgetter("weights"), data.rows, pure=False))
    return LabelMatrix.stacked(labels), np.concatenate(weights)


def gathered_entries(client: Client, data: ReadData) -> RowsByLabels | sp.coo_array | None:
    """Bring the entry weights of all rows to the client; None if there are none."""
    if data.facts[0].n_weighted is None:
        return None
    return stacked_entries(gathered(client, client.map(attrgetter("entries"), data.rows, pure=False)))


def _form_of(facts: Sequence[Facts]) -> TargetForm:
    """Return the form of all targets; raise if partitions differ."""
    first = facts[0]
    for fact in facts[1:]:
        if fact.n_features != first.n_features or not _same(fact.names, first.names):
            raise ValueError(
                f"A partition of X has {fact.n_features} features and another {first.n_features}, or "
                "other names; pass partitions with the same columns."
            )
        if (fact.form is None) != (first.form is None):
            raise ValueError(
                "One partition of y has one class per row and another a table of labels; pass one kind, "
                "classes with shape (n,)."
            )
    if first.form is None:
        classes = np.concatenate([fact.classes for fact in facts if fact.classes is not None])
        form = read_targets(classes)[1]
        n_columns = len(form.scored)
        for fact in facts:
            if fact.n_weighted not in (None, n_columns):
                raise ValueError(
                    f"A partition of entry_weight has {fact.n_weighted} columns, but y has "
                    f"{len(form.classes)} classes; pass {n_columns}."
                )
        return form
    forms = [fact.form for fact in facts if fact.form is not None]
    for fact, form in zip(facts, forms, strict=True):
        if len(form.classes) != len(forms[0].classes) or not _same(fact.label_names, first.label_names):
            raise ValueError(
                f"A partition of y has {len(form.classes)} labels and another {len(forms[0].classes)}, or "
                "different names; pass partitions with the same labels."
            )
    return replace(forms[0], negative=min(form.negative for form in forms))


def _refuse_inner_nodes(classes: Array, reader: Any) -> None:
    """Raise for classes that are inner nodes of the taxonomy of an estimator."""
    given, covariance = getattr(reader, "taxonomy", None), getattr(reader, "label_covariance", None)
    if given is None and not isinstance(covariance, Taxonomy):
        return
    tree = Taxonomy.from_any(covariance if given is None else given)
    inner = sorted(set(map(as_text, classes)) & (set(tree.nodes) - set(tree.leaves)))
    if inner:
        raise ValueError(
            f"y has {inner[0]!r}, an inner node of the taxonomy, which needs data in memory; pass "
            "leaves, None for other rows, or data in memory."
        )


def _same(one: Array | None, other: Array | None) -> bool:
    return (one is None and other is None) or (
        one is not None and other is not None and np.array_equal(one, other)
    )


def _refuse_unobserved(counts: Counts, names: Array | None, *, is_related: bool) -> None:
    seen = sp.csr_array((counts.observed > 0)[None].astype(np.int8))
    labels = LabelMatrix(sp.csr_array(seen.shape, dtype=np.int8), seen, names)
    require_observed(labels, is_related=is_related)


def arrange(client: Client, data: ReadData, common: Common, budget: float) -> tuple[list[Place], Future]:
    """Bring the rows into the order of solving; return their places and the data they share.

    budget: megabytes of rows per worker.
    """
    by_entry = common.factors is not None or common.roots is not None or data.counts.has_weights
    groups = data.groups(budget, is_wide=by_entry or common.covariance is not None)
    if common.covariance is not None and len(groups) > 1 and common.covariance.n_labels > _MOST_COUPLED:
        raise ParameterError(
            f"label_covariance couples {common.covariance.n_labels} labels, but at most {_MOST_COUPLED} are "
            "supported with rows in several places; raise `memory_budget` to bring all rows to one place, "
            "or use a diagonal."
        )
    limits = megabytes_of_workers(client)
    data.refuse_large(groups, limits, budget)
    shared = client.submit(itself, common, pure=False)
    is_filed = len(groups) > 1 and data.megabytes > _HELD_SHARE * sum(limits or [np.inf])
    together = data.places(groups, budget)
    is_coupled = common.covariance is not None
    visits, places = data.visits(together, is_coupled=is_coupled), {}
    workers = list(client.nthreads())
    held = client.who_has(data.rows) if is_filed else {}  # data in files looks small to Dask
    own = -(-len(together) // max(1, len(limits)))  # neighboring places per worker
    for number in sorted(range(len(together)), key=lambda place: place % own):
        parts = [[data.rows[part] for part in group] for group in together[number]]
        home = _most_at(held, [part for group in parts for part in group])
        if is_coupled and workers:  # distant places are visited at the same time
            home = [workers[min(number // own, len(workers) - 1)]]
        rows = client.submit(
            tasks.arranged, shared, number, parts, is_filed=is_filed, pure=False,
            workers=home, allow_other_workers=bool(home),
        )  # fmt: skip
        places[number] = Place(rows, visits[number], is_filed)
        if is_filed:  # limits transfers between workers to a few places
            wait_for_some(client, [place.partition for place in places.values()], 2 * len(limits))
    if is_filed or is_coupled:  # visits go where rows are
        wait_for_some(client, [place.partition for place in places.values()], 1)
    return [places[number] for number in range(len(together))], shared


def _most_at(held: Mapping[Any, Sequence[str]], rows: Sequence[Future]) -> list[str] | None:
    """Return the worker that has most of these; None if unknown."""
    count = Counter(worker for part in rows for worker in held.get(part.key, ()))
    return [count.most_common(1)[0][0]] if count else None


def megabytes_of_workers(client: Client) -> list[float]:
    """Return the memory limit of each worker; infinite without a limit."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return [1e-6 * worker["memory_limit"] or np.inf for worker in workers]
