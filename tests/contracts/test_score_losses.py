"""Requirements of every loss.  A new loss needs one more entry in ``LOSSES``."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from labelweave.problems.losses import EntrywiseLoss, ShiftedLoss, SoftmaxLoss
from labelweave.problems.losses.score_loss import ColumnsLoss
from reference import newton_twins

N, C, FITS = 11, 4, 3
ROWS, GROUPS = slice(2, 9), np.array([2, 0])
SCALES = [1e-6, 1e-2, 1.0, 10.0, 1e3]


def _weights():
    weights = np.random.default_rng(0).uniform(0.2, 3.0, (N, FITS))
    weights[[1, 3, 4], [0, 1, 2]] = 0.0
    return weights


def _softmax():
    codes = np.random.default_rng(1).integers(0, C, N)
    allowed = np.eye(C, dtype=bool)[codes]
    return SoftmaxLoss(codes, C, _weights()), lambda fit: newton_twins.SoftmaxTwin(
        allowed, _weights()[:, fit]
    )


def _partial():
    codes = np.random.default_rng(1).integers(0, C, N)
    allowed = np.eye(C, dtype=bool)[codes]
    partial = np.array([2, 3, 8, 10])
    allowed[partial] |= np.random.default_rng(2).random((4, C)) < 0.6
    loss = SoftmaxLoss(codes, C, _weights(), partial, allowed[partial])
    return loss, lambda fit: newton_twins.SoftmaxTwin(allowed, _weights()[:, fit])


def _shares():
    shares = np.random.default_rng(3).dirichlet(np.full(C, 0.3), N)
    loss = SoftmaxLoss(shares.argmax(axis=1), C, _weights(), shares=shares)
    return loss, lambda fit: _Expected(shares, _weights()[:, fit])


def _columns():
    """Two columns of two classes each, some rows without the second."""
    parts, unseen = [slice(0, 2), slice(2, 4)], np.arange(N)[:, None] % 3 == 0
    codes = np.random.default_rng(1).integers(0, 2, (2, N))
    weights = [_weights(), np.where(unseen, 0.0, _weights())]
    loss = ColumnsLoss([SoftmaxLoss(*one) for one in zip(codes, (2, 2), weights, strict=True)], parts)
    return loss, lambda fit: _Columns(parts, np.eye(2, dtype=bool)[codes], [one[:, fit] for one in weights])


class _Columns:
    def __init__(self, parts, allowed, weights):
        self.parts = parts
        self.twins = [newton_twins.SoftmaxTwin(*one) for one in zip(allowed, weights, strict=True)]

    def _of_columns(self, name, scores):
        own = zip(self.twins, self.parts, strict=True)
        return [getattr(twin, name)(scores[:, part]) for twin, part in own]

    def value(self, scores):
        return sum(self._of_columns("value", scores))

    def slope(self, scores):
        return np.hstack(self._of_columns("slope", scores))

    def curvature(self, scores):
        blocks = zip(*self._of_columns("curvature", scores), strict=True)
        return np.stack([block_diag(*pair) for pair in blocks])


class _Expected:
    """Every class of a row separately, weighted by its probability."""

    def __init__(self, shares, weights):
        self.twins = [
            newton_twins.SoftmaxTwin(np.tile(np.arange(C) == c, (N, 1)), weights * shares[:, c])
            for c in range(C)
        ]

    def value(self, scores):
        return sum(twin.value(scores) for twin in self.twins)

    def slope(self, scores):
        return sum(twin.slope(scores) for twin in self.twins)

    def curvature(self, scores):
        return sum(twin.curvature(scores) for twin in self.twins)


def _signs():
    return np.random.default_rng(1).integers(-1, 2, (N, C)).astype(np.int8)


def _logistic():
    loss = EntrywiseLoss("log_loss", _signs(), _weights(), is_separate=False)
    return loss, lambda fit: newton_twins.LogisticTwin(_signs(), _weights()[:, fit])


def _separate():
    loss = EntrywiseLoss("log_loss", _signs(), _weights(), is_separate=True)
    return loss, lambda group: newton_twins.LogisticTwin(_signs()[:, [group % C]], _weights()[:, group // C])


def _squared():
    loss = EntrywiseLoss(
        "squared_error",
        _signs(),
        _weights(),
        is_separate=False,
        entry_weights=np.where(_signs() < 0, 0.3, 1.0),
    )
    return loss, lambda fit: newton_twins.SquaredTwin(_signs(), _weights()[:, fit], 0.3)


def _separate_squared():
    loss = EntrywiseLoss("squared_error", _signs(), _weights(), is_separate=True)
    return loss, lambda group: newton_twins.SquaredTwin(_signs()[:, [group % C]], _weights()[:, group // C])


def _squared_hinge():
    loss = EntrywiseLoss("squared_hinge", _signs(), _weights(), is_separate=False)
    return loss, lambda fit: newton_twins.SquaredHingeTwin(_signs(), _weights()[:, fit])


def _weighted():
    """Entries with weights of their own: unobserved where these are 0."""
    factors = np.random.default_rng(6).integers(0, 3, (N, C)).astype(float)
    loss = EntrywiseLoss("log_loss", _signs(), _weights(), is_separate=False, entry_weights=factors)
    return loss, lambda fit: _Weighted(newton_twins.LogisticTwin(_signs(), _weights()[:, fit]), factors)


class _Weighted:
    def __init__(self, twin, factors):
        self.twin, self.factors = twin, factors

    def value(self, scores):
        seen = self.twin.weights[:, None] * self.factors * np.abs(self.twin.signs)
        return np.sum(seen * np.logaddexp(0, -self.twin.signs * scores))

    def slope(self, scores):
        return self.factors * self.twin.slope(scores)

    def curvature(self, scores):
        return self.factors[:, :, None] * self.twin.curvature(scores)


LOSSES = {
    "softmax": _softmax,
    "partial": _partial,
    "shares": _shares,
    "columns": _columns,
    "log_loss": _logistic,
    "separate": _separate,
    "squared_error": _squared,
    "separate squared": _separate_squared,
    "squared hinge": _squared_hinge,
    "weighted": _weighted,
}
# the slopes of others grow without bound
LIPSCHITZ = ["softmax", "partial", "shares", "columns", "log_loss", "separate"]


@pytest.fixture(params=LOSSES)
def loss_and_twin(request):
    return LOSSES[request.param]()


def _scores(loss, scale):
    return scale * np.random.default_rng(3).normal(size=loss.shape)


def _everything(loss):
    return slice(0, N), np.arange(loss.shape[1])


def _blocks(loss, state):
    """Compute W for the group 0, by products with unit vectors."""
    columns = loss.shape[2]
    blocks = np.empty((N, columns, columns))
    for column in range(columns):
        unit = np.zeros((N, 1, columns))
        unit[:, :, column] = 1.0
        blocks[:, :, column] = loss.curve(state[:, :1], unit, slice(0, N), np.array([0]))[:, 0]
    return blocks


@pytest.mark.parametrize("scale", SCALES)
def test_values_and_slopes_are_those_of_the_twin(loss_and_twin, scale):
    loss, twin = loss_and_twin
    scores = _scores(loss, scale)
    found = loss.evaluate(scores, *_everything(loss))
    for group in range(loss.shape[1]):
        assert np.isclose(found.values[group], twin(group).value(scores[:, group]), rtol=1e-12)
        slopes = twin(group).slope(scores[:, group])
        assert np.allclose(found.residuals[:, group], -slopes, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 10.0])
def test_slopes_are_the_finite_differences_of_values(loss_and_twin, scale):
    loss, _ = loss_and_twin
    scores, step = _scores(loss, scale), 1e-6
    direction = np.random.default_rng(4).normal(size=loss.shape)
    ahead = loss.evaluate(scores + step * direction, *_everything(loss)).values
    behind = loss.evaluate(scores - step * direction, *_everything(loss)).values
    residuals = loss.evaluate(scores, *_everything(loss)).residuals
    slopes = -np.einsum("ngc,ngc->g", residuals, direction)
    assert np.allclose((ahead - behind) / (2 * step), slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "partial"])
@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 10.0])
def test_curvatures_are_the_finite_differences_of_slopes(name, scale):
    loss, _ = LOSSES[name]()
    scores, step = _scores(loss, scale), 1e-6
    direction = np.random.default_rng(4).normal(size=loss.shape)
    ahead = loss.evaluate(scores + step * direction, *_everything(loss)).residuals
    behind = loss.evaluate(scores - step * direction, *_everything(loss)).residuals
    state = loss.evaluate(scores, *_everything(loss)).state
    curved = loss.curve(state, direction, *_everything(loss))
    assert np.allclose((behind - ahead) / (2 * step), curved, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["softmax", "shares", "log_loss", "separate", "weighted", "shifted"])
@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 10.0])
def test_trace_gradients_are_the_finite_differences_of_curvatures(name, scale):
    loss, _ = (
        LOSSES[name]()
        if name in LOSSES
        else (ShiftedLoss(_softmax()[0], np.ones((N, C)), is_separate=False), 0)
    )
    scores, step, every = _scores(loss, scale), 1e-5, _everything(loss)
    root, direction = np.random.default_rng(5).normal(size=(2, *loss.shape, loss.shape[2]))
    covariances, direction = root @ root.transpose(0, 1, 3, 2), direction[..., 0]

    def trace(at):
        state, columns = loss.evaluate(at, *every).state, np.eye(loss.shape[2])
        curved = [loss.curve(state, np.broadcast_to(unit, loss.shape).copy(), *every) for unit in columns]
        return np.einsum("cngd,ngcd->", np.array(curved), covariances)

    slope = (trace(scores + step * direction) - trace(scores - step * direction)) / (2 * step)
    found = np.vdot(loss.trace_gradient(scores, covariances, *every), direction)
    assert np.isclose(found, slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
def test_products_traces_and_sums_of_curvatures_are_those_of_the_twin(loss_and_twin, scale):
    loss, twin = loss_and_twin
    scores = _scores(loss, scale)
    state = loss.evaluate(scores, *_everything(loss)).state
    true = twin(0).curvature(scores[:, 0])
    blocks = _blocks(loss, state)
    assert np.allclose(blocks, true, atol=1e-13)
    assert np.allclose(blocks, blocks.transpose(0, 2, 1), atol=1e-15)
    one = (state[:, :1], slice(0, N), np.array([0]))
    assert np.allclose(loss.row_curvatures(*one)[:, 0], np.trace(true, axis1=1, axis2=2), atol=1e-13)
    assert np.allclose(loss.mean_curvature(*one), true.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_the_root_times_its_transpose_is_the_curvature(loss_and_twin, scale):
    loss, twin = loss_and_twin
    scores = _scores(loss, scale)
    state = loss.evaluate(scores, *_everything(loss)).state
    if isinstance(loss, ColumnsLoss):  # whose fits use no solver that needs a root
        with pytest.raises(NotImplementedError):
            loss.root(state, *_everything(loss))
        return
    scale_of, shares = loss.root(state, *_everything(loss))
    roots = []
    for i in range(N):
        projector = np.eye(loss.shape[2])
        if shares is not None:
            assert np.isclose(np.linalg.norm(shares[i, 0]), 1.0)
            projector -= np.outer(shares[i, 0], shares[i, 0])
        roots.append(np.diag(scale_of[i, 0]) @ projector)
    V = newton_twins.block_diagonal(np.array(roots))
    assert np.allclose(V @ V.T, newton_twins.block_diagonal(twin(0).curvature(scores[:, 0])), atol=1e-13)


def test_rows_and_groups_are_chosen_alike_everywhere(loss_and_twin):
    loss, _ = loss_and_twin
    scores, vectors = _scores(loss, 1.0), _scores(loss, 2.0)
    every = _everything(loss)
    whole = loss.evaluate(scores, *every)
    part = loss.evaluate(scores[ROWS][:, GROUPS], ROWS, GROUPS)
    assert np.array_equal(part.residuals, whole.residuals[ROWS][:, GROUPS])
    assert np.array_equal(part.state, whole.state[ROWS][:, GROUPS])
    some = vectors[ROWS][:, GROUPS]
    assert np.array_equal(
        loss.curve(part.state, some, ROWS, GROUPS), loss.curve(whole.state, vectors, *every)[ROWS][:, GROUPS]
    )
    assert np.array_equal(
        loss.row_curvatures(part.state, ROWS, GROUPS),
        loss.row_curvatures(whole.state, *every)[ROWS][:, GROUPS],
    )
    cuts = [slice(0, 4), slice(4, 9), slice(9, N)]
    parts = [loss.evaluate(scores[cut], cut, every[1]).values for cut in cuts]
    assert np.allclose(np.sum(parts, axis=0), whole.values, rtol=1e-13)


@pytest.mark.parametrize("size", [1e3, -1e3, 1e300])
@pytest.mark.parametrize("name", LIPSCHITZ)
def test_extreme_scores_overflow_nowhere(name, size):
    loss, _ = LOSSES[name]()
    scores = size * np.sign(_scores(loss, 1.0))
    found = loss.evaluate(scores, *_everything(loss))
    assert np.isfinite(found.values).all()
    assert (found.values >= 0).all()
    assert np.abs(found.residuals).max() <= _weights().max()
    roots = () if name == "columns" else loss.root(found.state, *_everything(loss))
    for array in (
        *roots,
        loss.row_curvatures(found.state, *_everything(loss)),
    ):
        assert array is None or (np.isfinite(array).all() and (np.asarray(array) >= 0).all())


def test_rows_without_weight_or_observation_contribute_nothing(loss_and_twin):
    loss, twin = loss_and_twin
    scores = _scores(loss, 1.0)
    found = loss.evaluate(scores, *_everything(loss))
    moved = scores.copy()
    silent = np.array(
        [[not twin(g).slope(scores[:, g])[i].any() for g in range(loss.shape[1])] for i in range(N)]
    )
    assert silent.any()
    moved[silent] += 100.0
    again = loss.evaluate(moved, *_everything(loss))
    assert np.array_equal(again.values, found.values)
    curved = loss.curve(again.state, np.ones(loss.shape) + moved, *_everything(loss))
    assert not curved[silent].any()
    assert not again.residuals[silent].any()
