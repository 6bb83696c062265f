"""What a time budget buys: quality of AutoLabelClassifier on test rows against its time budget.

Budgets that have the same plan have the same model, which is fitted once.  Nothing is chosen on test rows.

    OMP_NUM_THREADS=1 python -m benchmarks.auto_time_budget --sets scene yeast \
        --out benchmarks/results/auto_time_budget.json --figure docs/images/auto_time_budget.png
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from benchmarks.auto_quality import load, rank_measures
from benchmarks.frame import OUT, begin_picture, command, cost_of, flag, save, write_picture
from labelweave import AutoLabelClassifier, metrics
from labelweave.decisions.automatic.plan import Shape, make_plan

_BUDGETS = (10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 600.0)


def measure(name: str) -> list[dict[str, Any]]:
    """Fit a set's training rows within each budget, and measure its test rows."""
    X, Y, X_test, Y_test = load(name)
    truth, found, known = Y_test.positives.toarray(), [], dict[str, dict[str, Any]]()
    n, d = X.shape
    shape = Shape(n, d, Y.n_labels, X.nnz / n if sp.issparse(X) else float(d))
    for budget in _BUDGETS:
        model = AutoLabelClassifier(time_budget=budget, n_jobs=2)
        plan = json.dumps(asdict(make_plan(shape, None, budget)))
        if plan not in known:
            _, seconds, spent = cost_of(model.fit, X, Y)
            known[plan] = {
                "seconds": seconds,
                "cpu_seconds": spent,
                "oof_loss": model.oof_loss_,
                "micro_f1": float(metrics.f1_score(Y_test, model.predict(X_test), average="micro")),
                "micro_auprc": rank_measures(truth, model.predict_proba(X_test))["AUPRC_MICRO"],
            }
        found.append({"budget": budget, "plan": json.loads(plan), **known[plan]})
        print(name, found[-1], flush=True)
    return found


def draw(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    figure, axes = begin_picture(1, len(results), figsize=(4.6 * len(results), 3.4))
    for ax, (name, found) in zip([axes] if len(results) == 1 else axes, results.items(), strict=True):
        budgets = [one["budget"] for one in found]
        for measure_name, words, color in (
            ("micro_f1", "micro-F1", "#14538f"),
            ("micro_auprc", "micro-AUPRC", "#c0392b"),
        ):
            values = [one[measure_name] for one in found]
            ax.semilogx(budgets, values, "o-", color=color, label=words, drawstyle="steps-post")
        ax.set(title=name, xlabel="time budget in seconds", xticks=budgets)
        ax.set_xticklabels([f"{budget:g}" for budget in budgets])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.legend(fontsize="small", loc="center right")
    write_picture(figure, path)


@command(sets=["scene", "yeast"], out=OUT, figure=flag(type=Path))
def main(flags: Any) -> None:
    results = {name: measure(name) for name in flags.sets}
    save(flags.out, {"sets": results})
    if flags.figure:
        draw(results, flags.figure)
