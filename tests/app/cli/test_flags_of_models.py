"""Flags of ``labelweave fit`` are parameters of the constructors; no fit is needed to see it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ("max-margin --C 0.5 --jobs 2 --no-intercept", {"C": 0.5, "n_jobs": 2, "fit_intercept": False}),
        ("max-margin --flip-rates 0.1,0.02", {"flip_rates": [0.1, 0.02]}),
        ("max-margin --flip-rates propensity --threshold -0.25",
         {"flip_rates": "propensity", "threshold": -0.25}),
        ("max-margin --kernel poly --gamma auto --degree 2 --coef0 0.5",
         {"gamma": "auto", "degree": 2, "coef0": 0.5}),
        ("max-margin --kernel rbf --gamma 2 --solver cholesky --dtype float32",
         {"gamma": 2.0, "solver": "cholesky", "dtype": "float32"}),
        ("max-margin --hyperparameters learn --cv 3 --label-covariance learn",
         {"cv": 3, "label_covariance": "learn"}),
        ("kernel-logistic --tie class --max-learning-iter 1", {"tie": "class", "max_learning_iter": 1}),
        ("kernel-logistic --tie shared,class --cv 3", {"tie": ["shared", "class"], "cv": 3}),
        ("kernel-logistic --label-covariance 2 --learning-rows 30",
         {"label_covariance": 2, "learning_rows": 30}),
        ("kernel-logistic --label-covariance learn --learning-blocks 2",
         {"label_covariance": "learn", "learning_blocks": 2}),
        ("kernel-logistic --kernel-rank 20 --kernel laplacian --hyperparameters fixed --threshold 0.3",
         {"kernel_rank": 20, "kernel": "laplacian", "hyperparameters": "fixed", "threshold": 0.3}),
        ("kernel-logistic --intercept-variance 0 --seed 3 --scale 2",
         {"intercept_variance": 0.0, "random_state": 3, "scale": 2.0}),
        ("low-rank --rank 0.4 --loss log_loss --tol 1e-2 --max-iter 40",
         {"rank": 0.4, "loss": "log_loss", "tol": 0.01, "max_iter": 40}),
        ("low-rank --rank 2 --alpha 0.3 --penalty ridge --threshold 0.4 --class-weight 0.25,1",
         {"rank": 2, "alpha": 0.3, "penalty": "ridge", "threshold": 0.4,
          "class_weight": {0: 0.25, 1: 1}}),
        ("low-rank --init random --class-weight balanced", {"start": "random", "class_weight": "balanced"}),
        ("low-rank --cv 3 --ranks 0.2,0.4 --alphas 0.1,1 --scoring precision_at_1",
         {"cv": 3, "ranks": [0.2, 0.4], "alphas": [0.1, 1], "scoring": "precision_at_1"}),
        ("low-rank --ranks '2, 5' --alpha 0.5", {"ranks": [2, 5], "alphas": [0.5]}),
        ("low-rank --alphas 3 --rank 0.4 --rule one_standard_error",
         {"ranks": [0.4], "alphas": 3, "rule": "one_standard_error"}),
        ("low-rank --alphas 0 --ranks 3", {"ranks": [3], "alphas": [0]}),
        ("low-rank --alphas 0.5 --penalty ridge --hyperparameters learn",
         {"alphas": [0.5], "penalty": "ridge", "hyperparameters": "learn"}),
        ("label-graph --cliques-per-round 2 --max-rounds 2 --graph-tol 0.001 --early-stopping",
         {"cliques_per_round": 2, "max_rounds": 2, "graph_tol": 0.001, "early_stopping": True}),
        ("label-graph --clique-size 3 --validation-fraction 0.2 --no-intercept",
         {"clique_size": 3, "validation_fraction": 0.2, "fit_intercept": False}),
        ("label-graph --graph full --inference exact --exact-width 5",
         {"graph": "full", "inference": "exact", "exact_width": 5}),
        ("label-graph --graph full --inference 7", {"graph": "full", "inference": 7}),
        ("label-graph --graph none --false-positive-cost 2 --false-negative-cost 0.5",
         {"graph": "none", "false_positive_cost": 2.0, "false_negative_cost": 0.5}),
        ("label-tree --leaf-size 2 --prune off --loss hinge --n-trees 2",
         {"leaf_size": 2, "prune": "off", "loss": "hinge", "n_trees": 2}),
        ("binary-relevance --loss log_loss", {"loss": "log_loss"}),
        ("auto --members 'rbf, linear'", {"members": ["rbf", "linear"]}),
    ],
)  # fmt: skip
def test_flags_reach_the_constructor(run, monkeypatch, words, parameters):
    asked = []
    monkeypatch.setattr("labelweave.app.cli.fitting.run_fit", lambda request: asked.append(request) or 0)
    run(f"fit d.txt --out m.lw --model {words}")
    graph = asked[0].flags.graph
    found = {} if graph is None else {"graph": graph}
    made = asked[0].classifier(found).get_params()
    own = {name.rpartition("__")[2]: value for name, value in made.items()}
    assert {name: own[name] for name in parameters} == parameters
