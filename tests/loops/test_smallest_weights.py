import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from labelweave.foundation.loops.tables import drop_smallest

_FEW = st.integers(-3, 3).map(float)  # with ties


@given(arrays(np.float64, (9, 3), elements=_FEW), st.floats(0.0, 1.0), arrays(bool, 3))
def test_the_smallest_weights_of_active_labels_go(weights, share, active):
    left = weights.copy()
    drop_smallest(left, np.full(3, share), active)
    for label in range(3):
        sizes = np.abs(weights[:, label])
        places = np.flatnonzero(sizes)
        n_dropped = min(len(places), 1 + int((1 - share) * len(places))) if active[label] else 0
        order = places[np.argsort(sizes[places], kind="stable")]
        expected = weights[:, label].copy()
        expected[order[:n_dropped]] = 0
        np.testing.assert_array_equal(left[:, label], expected)
