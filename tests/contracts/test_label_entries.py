"""Requirements of every form of the entries.  A new form needs one more entry in ``FORMS``."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.problems import label_entries
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES
from labelweave.problems.low_rank_factors import RowsLoss
from reference.entry_twins import LOSSES, EntriesTwin

RANK = 3


def _dense(loss, signs, row_weights, negative_weight, factors=None, **options):
    ones = np.ones(signs.shape[1], row_weights.dtype)
    complete = (signs != 0).all()
    listed = sp.csr_array((signs > 0).astype(np.int8)) if complete else sp.csr_array(signs)
    table = label_entries.EntryTable(listed, not complete, row_weights, ones, negative_weight, factors)
    return label_entries.DenseEntries(ENTRY_LOSSES[loss](), table, Workers(1), **options)


def _streamed(loss, signs, row_weights, negative_weight):
    """Second derivatives exceed the memory, and blocks have one row or two."""
    entries = _dense(loss, signs, row_weights, negative_weight, budget=0.0)
    entries.blocks = [slice(i, min(i + 2, len(signs))) for i in range(0, len(signs), 2)]
    return entries


def _sampled(loss, signs, row_weights, negative_weight, factors=None):
    return label_entries.SampledEntries.from_signs(
        ENTRY_LOSSES[loss](), sp.csr_array(signs), row_weights, negative_weight, Workers(1), factors
    )


def _factors(shape, *, is_sparse):
    """Costs per label and weights of entries, a few of them 0, and their products."""
    random = np.random.default_rng(shape[0])
    costs = random.choice([0.0, 0.5, 2.0], (2, 1, shape[1]))
    entries = random.choice([0.0, 1.0, 1.0, 3.0], shape)
    stored = sp.csr_array(entries - 1) if is_sparse else entries
    return label_entries.EntryWeights(*costs, stored), lambda signs: np.where(signs > 0, *costs) * entries


def _quadratic(loss, signs, row_weights, negative_weight):
    assert loss == "squared_error"
    positives = sp.csr_array((signs > 0).astype(np.int8))
    return label_entries.QuadraticEntries.from_pattern(positives, row_weights, negative_weight, Workers(1))


FORMS = {"dense": _dense, "streamed": _streamed, "sampled": _sampled, "quadratic": _quadratic}
WEIGHTED = {"dense, weighted": (_dense, False), "sampled, weighted": (_sampled, True)}
CASES = [(form, loss) for form in ("dense", "streamed", "sampled", *WEIGHTED) for loss in LOSSES]
CASES.append(("quadratic", "squared_error"))
WITHOUT_WEIGHT = (-np.ones((1, 1), np.int8), np.zeros(1), 1.0, np.ones((1, RANK)), np.ones((1, RANK)))


@st.composite
def problems(draw, form):
    """Signs with empty rows and columns, weights that may be 0, factors of some scale."""
    n, n_labels = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    signs = np.where(random.random((n, n_labels)) < draw(st.sampled_from([0.0, 0.3, 1.0])), 1, -1)
    if form != "quadratic":
        signs[random.random(signs.shape) < draw(st.sampled_from([0.0, 0.4, 0.9]))] = 0
    weights = random.choice([0.0, 0.5, 1.0, 3.0], n) if draw(st.booleans()) else np.ones(n)
    negative = draw(st.sampled_from([1.0, 0.2, 2.5]))
    scale = draw(st.sampled_from([1e-3, 1.0, 3.0]))
    image, fixed = scale * random.normal(size=(n, RANK)), random.normal(size=(n_labels, RANK))
    return signs.astype(np.int8), weights, negative, image, fixed


def _both(form, loss, problem, *, is_transposed):
    """The entries and their reference, seen from one side or the other, with both factors."""
    signs, weights, negative, image, fixed = problem
    wide = np.where(signs > 0, 1.0, negative) * weights[:, None]
    if form in WEIGHTED:
        make, is_sparse = WEIGHTED[form]
        factors, written_out = _factors(signs.shape, is_sparse=is_sparse)
        entries, wide = make(loss, signs, weights, negative, factors), wide * written_out(signs)
    else:
        entries = FORMS[form](loss, signs, weights, negative)
    twin = EntriesTwin(loss, signs, wide)
    if is_transposed:
        return entries.transposed, twin.transposed, fixed, image
    return entries, twin, image, fixed


def case(test):
    """Run a test for every form, every loss, both sides and many problems."""

    @pytest.mark.parametrize("is_transposed", [False, True])
    @pytest.mark.parametrize(("form", "loss"), CASES)
    def run(form, loss, is_transposed):
        @settings(max_examples=8)
        @given(problem=problems(form))
        @example(problem=WITHOUT_WEIGHT)
        def one(problem):
            test(*_both(form, loss, problem, is_transposed=is_transposed))

        one()

    return run


@case
def test_values_gradients_and_curvatures_are_those_of_the_twin(entries, twin, image, fixed):
    assert entries.shape == twin.signs.shape
    point = entries.at(image, fixed)
    assert np.allclose(point.values, twin.values(image, fixed), rtol=1e-10, atol=1e-12)
    assert np.allclose(entries.values(image, fixed), point.values, rtol=1e-12, atol=1e-13)
    assert np.allclose(point.gradients, twin.gradients(image, fixed) @ fixed, atol=1e-11)
    direction = np.random.default_rng(1).normal(size=image.shape)
    bent = twin.curvatures(image, fixed) * (direction @ fixed.T) @ fixed
    assert np.allclose(point.curve(direction), bent, atol=1e-11)
    curvatures = twin.curvatures(image, fixed).sum(axis=1)
    assert np.allclose(point.weights * entries.column_weights.sum(), curvatures, atol=1e-12)


@case
def test_derivatives_are_finite_differences(entries, twin, image, fixed):
    direction, step = np.random.default_rng(2).normal(size=image.shape), 1e-6
    ahead, behind = image + step * direction, image - step * direction
    gradients = (entries.values(ahead, fixed) - entries.values(behind, fixed)) / (2 * step)
    point = entries.at(image, fixed)
    assert np.allclose((point.gradients * direction).sum(axis=1), gradients, rtol=1e-5, atol=1e-6)
    if (np.abs(np.abs(image @ fixed.T) - 1) > 1e-4).all():  # away from the kinks of the hinge
        bent = (entries.at(ahead, fixed).gradients - entries.at(behind, fixed).gradients) / (2 * step)
        assert np.allclose(point.curve(direction), bent, rtol=1e-5, atol=1e-6)


@case
def test_the_gradient_operator_is_the_matrix_of_gradients(entries, twin, image, fixed):
    operator, gradients = entries.gradient_operator(image, fixed), twin.gradients(image, fixed)
    random = np.random.default_rng(3)
    right, left = random.normal(size=(gradients.shape[1], 2)), random.normal(size=(gradients.shape[0], 2))
    assert np.allclose(operator.matmul(right), gradients @ right, atol=1e-11)
    assert np.allclose(operator.adjoint(left), gradients.T @ left, atol=1e-11)
    for share in (0.0, 0.3, 1.0):
        conjugate = twin.conjugate(image, fixed, share)
        assert operator.conjugate(share) == pytest.approx(conjugate, rel=1e-8, abs=1e-8)


@case
def test_the_dual_never_exceeds_the_primal(entries, twin, image, fixed):
    """Fenchel and Young: loss + conjugate = <gradients, scores> at the share 1, no less below."""
    operator, total = entries.gradient_operator(image, fixed), entries.values(image, fixed).sum()
    scores = image @ fixed.T
    along = (operator.matmul(fixed) * image).sum()
    assert along == pytest.approx((twin.gradients(image, fixed) * scores).sum(), abs=1e-9)
    size = 1e-9 * (1 + abs(total))
    assert operator.conjugate(1.0) + total == pytest.approx(along, abs=size)
    assert operator.conjugate(0.4) + total >= 0.4 * along - size


@case
def test_float32_is_close_to_float64(entries, twin, image, fixed):
    narrow = [array.astype(np.float32) for array in (image, fixed)]
    if isinstance(entries, label_entries.SampledEntries):
        weights = entries.weights.astype(np.float32)
        signs = sp.csr_array(
            (entries.signs.values, entries.signs.indices, entries.signs.indptr), shape=entries.shape
        )
        made = label_entries.SampledEntries.from_signs(
            entries.loss, signs, np.ones(entries.shape[0], np.float32), 1.0, Workers(1)
        )
        single = label_entries.SampledEntries(entries.loss, made.signs, weights)
    elif isinstance(entries, label_entries.DenseEntries):
        table = entries.table
        rows, columns = (w.astype(np.float32) for w in (table.row_weights, table.column_weights))
        single = label_entries.DenseEntries(
            entries.loss,
            label_entries.EntryTable(
                table.signs, table.lists_all, rows, columns, table.negative_weight, table.factors
            ),
            Workers(1),
        )
    else:
        return
    found, true = single.at(*narrow), entries.at(image, fixed)
    assert found.gradients.dtype == found.weights.dtype == found.curve(narrow[0]).dtype == np.float32
    assert found.values.dtype == np.float64
    for one, other in (
        (found.values, true.values),
        (found.gradients, true.gradients),
        (found.weights, true.weights),
    ):
        assert np.allclose(one, other, rtol=1e-4, atol=1e-4 * (1 + np.abs(other).max(initial=0)))


@pytest.mark.parametrize("negative", [1.0, 0.3, 2.0])
def test_float32_quadratic_entries(negative):
    random = np.random.default_rng(0)
    signs = np.where(random.random((40, 9)) < 0.2, 1, -1).astype(np.int8)
    image, fixed = random.normal(size=(40, RANK)), random.normal(size=(9, RANK))
    wide, single = (
        _quadratic("squared_error", signs, np.ones(40, dtype), negative).at(
            image.astype(dtype), fixed.astype(dtype)
        )
        for dtype in (np.float64, np.float32)
    )
    assert single.gradients.dtype == np.float32
    assert np.allclose(single.values, wide.values, rtol=1e-5, atol=1e-5)
    assert np.allclose(single.gradients, wide.gradients, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize(("form", "loss"), CASES)
def test_threads_change_no_bit(form, loss, threads):
    random = np.random.default_rng(0)
    signs = random.choice([-1, 1], (700, 400)).astype(np.int8)
    image, fixed = random.normal(size=(700, RANK)), random.normal(size=(400, RANK))
    found = []
    make, extra = FORMS.get(form), ()
    if form in WEIGHTED:
        make, is_sparse = WEIGHTED[form]
        extra = _factors(signs.shape, is_sparse=is_sparse)[:1]
    for count in (1, threads):
        entries = make(loss, signs, np.ones(700), 0.5, *extra)
        with Workers(count).running() as workers:
            for part in (entries, getattr(entries, "signs", None), getattr(entries, "positives", None)):
                if part is not None:
                    part.workers = workers
            point, operator = entries.at(image, fixed), entries.gradient_operator(image, fixed)
            found.append(
                [
                    point.values,
                    point.gradients,
                    point.curve(image),
                    operator.matmul(fixed),
                    operator.adjoint(image),
                ]
            )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_all_forms_of_one_loss_agree():
    random = np.random.default_rng(5)
    signs = random.choice([-1, 1], (12, 7)).astype(np.int8)
    weights, image = random.uniform(0, 2, 12), random.normal(size=(12, RANK))
    fixed = random.normal(size=(7, RANK))
    points = [form("squared_error", signs, weights, 0.7).at(image, fixed) for form in FORMS.values()]
    for point in points[1:]:
        assert np.allclose(point.values, points[0].values)
        assert np.allclose(point.gradients, points[0].gradients)


def test_the_cheapest_form_is_chosen():
    positives = sp.csr_array(np.eye(20, dtype=np.int8))
    few, many = positives.copy(), sp.csr_array(np.ones((20, 20), np.int8))
    ones, workers = np.ones(20), Workers(1)

    def kind(labels, loss):
        return type(RowsLoss(labels, ones, loss).entries(workers))

    assert kind(LabelMatrix(positives), "squared_error") is label_entries.QuadraticEntries
    assert kind(LabelMatrix(positives), "log_loss") is label_entries.DenseEntries
    assert kind(LabelMatrix(positives, few), "squared_error") is label_entries.SampledEntries
    assert kind(LabelMatrix(positives, many), "squared_hinge") is label_entries.DenseEntries


def test_curvature_is_uniform_where_all_entries_of_a_row_weigh_the_same():
    signs, even, uneven = np.where(np.eye(4, 3) > 0, 1, -1), np.ones(4), np.array([1.0, 1.0, 2.0, 1.0])
    assert _quadratic("squared_error", signs, even, 1.0).has_uniform_curvature
    assert _quadratic("squared_error", signs, even, 1.0).transposed.has_uniform_curvature
    assert _quadratic("squared_error", signs, uneven, 1.0).has_uniform_curvature
    assert not _quadratic("squared_error", signs, uneven, 1.0).transposed.has_uniform_curvature
    assert not _quadratic("squared_error", signs, even, 0.5).has_uniform_curvature


@pytest.mark.parametrize("negative_weight", [0.0, 0.3, 1.0])
def test_the_form_without_a_table_agrees_for_every_background(negative_weight):
    random = np.random.default_rng(0)
    signs, weights = random.choice([-1, 1], (7, 5)), random.uniform(0.5, 2.0, 7)
    image, fixed = random.normal(size=(7, RANK)), random.normal(size=(5, RANK))
    forms = [form("squared_error", signs, weights, negative_weight) for form in (_quadratic, _dense)]
    quick, slow = (form.at(image, fixed) for form in forms)
    np.testing.assert_allclose(quick.values, slow.values)
    np.testing.assert_allclose(forms[0].values(image, fixed), slow.values)
    np.testing.assert_allclose(quick.gradients, slow.gradients, atol=1e-12)
    np.testing.assert_allclose(quick.curve(image), slow.curve(image), atol=1e-12)


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize(("form", "loss"), CASES)
def test_shifted_entries_are_those_at_shifted_scores(form, loss, is_transposed):
    random = np.random.default_rng(4)
    signs = np.where(random.random((7, 5)) < 0.4, 1, -1).astype(np.int8)
    if form != "quadratic":
        signs[0, 1:3] = 0
    known = random.normal(size=(7, 2)), random.normal(size=(5, 2))
    problem = signs, np.ones(7), 0.5, random.normal(size=(7, RANK)), random.normal(size=(5, RANK))
    entries, twin, image, fixed = _both(form, loss, problem, is_transposed=False)
    shifted = label_entries.ShiftedEntries(entries, *known)
    if is_transposed:
        shifted, twin, known, image, fixed = shifted.transposed, twin.transposed, known[::-1], fixed, image
    wide = np.hstack([image, known[0]]), np.hstack([fixed, known[1]])
    point = shifted.at(image, fixed)
    np.testing.assert_allclose(point.values, twin.values(*wide))
    np.testing.assert_allclose(shifted.values(image, fixed), twin.values(*wide))
    np.testing.assert_allclose(point.gradients, twin.gradients(*wide) @ fixed, atol=1e-12)
    direction = random.normal(size=image.shape)
    bent = twin.curvatures(*wide) * (direction @ fixed.T) @ fixed
    # curvatures of dense entries are kept in single precision
    np.testing.assert_allclose(point.curve(direction), bent, atol=1e-6 if form.startswith("dense") else 1e-12)
    operator, gradients = shifted.gradient_operator(image, fixed), twin.gradients(*wide)
    conjugate = twin.conjugate(*wide, 0.5) - 0.5 * (gradients * (known[0] @ known[1].T)).sum()
    np.testing.assert_allclose(operator.conjugate(0.5), conjugate, rtol=1e-6)
