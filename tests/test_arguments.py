"""Arguments are distinguished by their annotations."""

import pickle
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from labelweave import CliqueGraph, LabelCovariance, metrics
from labelweave.app.cli.messages import in_flags
from labelweave.foundation.arguments import ArgumentError, ParameterError, checked
from labelweave.postprocessing.map import MapInference


@checked
def _called(names: Sequence[str] = (), counts: Iterable[int] = (), share: float = 0.5, flag: bool = False):
    return list(names), list(counts), share, flag


def test_iterators_are_not_used_up():
    assert _called(counts=iter([1, 2]))[1] == [1, 2]
    with pytest.raises(ArgumentError, match=r"names is <.*>; pass a list, each text"):
        _called(names=iter(["a"]))
    Y = np.eye(3, dtype=int)
    assert metrics.score_table(Y, Y + 0.1, k=iter([1])) == metrics.score_table(Y, Y + 0.1, k=[1])


def test_whole_numbers_that_are_too_large_are_told_so():
    with pytest.raises(ArgumentError, match=r"max_nodes is 1000.*; pass an integer of at most 18 dig"):
        MapInference(CliqueGraph.empty(2), max_nodes=10**30)


def test_numbers_and_flags_are_told_apart():
    assert _called(share=np.float32(1), flag=np.True_)[2:] == (1, True)
    with pytest.raises(ArgumentError, match="share is True; pass a number"):
        _called(share=True)
    with pytest.raises(ArgumentError, match="flag is a ndarray of shape"):
        _called(flag=np.array([True, False]))
    with pytest.raises(ValueError, match="amount is True"):
        LabelCovariance.identity(2).shrink(True)


def test_messages_name_parameters_to_users_of_python_and_of_the_command_line_but_leave_data_alone():
    error = ParameterError(f"The label {'`tol`'!r} is unknown; raise `n_jobs`, or use `prune='small'`.")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert str(one) == "The label '`tol`' is unknown; raise n_jobs, or use prune='small'."
        assert in_flags(one) == "The label '`tol`' is unknown; raise --jobs, or use --prune small."
