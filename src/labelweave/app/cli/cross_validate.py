"""``labelweave cross-validate``: a model measured on folds of the rows."""

from __future__ import annotations

from dataclasses import asdict

from labelweave.app.cli.comparing import compared, name_of
from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.fitting import prepared
from labelweave.app.cli.messages import console, metric_table, print_json
from labelweave.decisions.comparison.compare import COSTS


def run(request: FitRequest, as_json: bool) -> None:
    """Fit the model to all folds but one, measure it on that one, and print what came of it."""
    if request.dask is not None:
        from labelweave.app.cli.cluster_fit import cross_validated_on_cluster

        found, n_rows = cross_validated_on_cluster(request)
        name = name_of(request)
    else:
        ready = prepared(request)
        request, n_rows = ready.request, len(ready.targets.rows)
        name = name_of(request)
        found = compared(request, ready.targets, {name: ready.model})
    folds, means = request.compare_folds, {m: found.interval(name, m) for m in found.metrics}
    if as_json:
        values = {metric: part.tolist() for metric, part in found.values[name].items()}
        metrics = {metric: asdict(one) | {"folds": values[metric]} for metric, one in means.items()}
        print_json({"model": name, "rows": n_rows, "folds": folds, "metrics": metrics})
        return
    shown = {
        "mean": {metric: f"{one.mean:.4g}" for metric, one in means.items()},
        "95 % interval": {
            metric: "" if metric in COSTS else f"{one.low:.4g} to {one.high:.4g}"
            for metric, one in means.items()
        },
    }
    console().print(f"{name}, {n_rows} rows, {folds} folds")
    console().print(metric_table(shown, "intervals are of the mean over folds, which share training rows"))
