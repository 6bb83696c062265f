import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import labelweave as lw

X, Y = np.eye(6), np.arange(12).reshape(6, 2) % 3 == 0
ESTIMATORS = [
    lw.MaxMarginClassifier(), lw.MaxMarginClassifier(kernel="rbf"), lw.KernelLogisticClassifier(),
    lw.LowRankClassifier(rank=1), lw.LabelGraphClassifier(), lw.LabelTreeClassifier(),
    lw.AutoLabelClassifier(),
]  # fmt: skip


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_collections_are_refused_by_the_name_of_the_module_that_takes_them(model):
    with pytest.raises(ValueError, match=r"X is a Dask Array.* labelweave\.dask"):
        model.fit(da.from_array(X, chunks=2), Y)
    with pytest.raises(ValueError, match=r"Dask.* labelweave\.dask"):
        model.fit(X, da.from_array(Y, chunks=2))


def test_frames_and_rows_to_predict_are_refused_too():
    frame = dd.from_pandas(pd.DataFrame(X).add_prefix("f"), npartitions=2)
    with pytest.raises(ValueError, match=r"X is a Dask DataFrame.* labelweave\.dask"):
        lw.MaxMarginClassifier().fit(frame, Y)
    fitted = lw.MaxMarginClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=r"X is a Dask Array.* labelweave\.dask"):
        fitted.predict(da.from_array(X, chunks=2))
