"""The package iterative-stratification: from 0/1 labels to folds of every seed and row, and seconds."""

import time

import numpy as np
from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

from benchmarks.peers.exchange import Arrays, answer


@answer
def main(given: Arrays, _: str) -> Arrays:
    Y, n_folds, n_seeds = given["labels"], int(given["folds"]), int(given["seeds"])
    X = np.zeros((len(Y), 1))
    folds, seconds = np.empty((n_seeds, len(Y)), np.int16), np.empty(n_seeds)
    for seed in range(n_seeds):
        start = time.process_time()
        splitter = MultilabelStratifiedKFold(n_folds, shuffle=True, random_state=seed)
        for fold, (_, test) in enumerate(splitter.split(X, Y)):
            folds[seed, test] = fold
        seconds[seed] = time.process_time() - start
    return {"folds": folds, "seconds": seconds}
