"""The package iterative-stratification in a separate process: reads 0/1 labels, writes folds and seconds."""

import argparse
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp


def main() -> None:
    from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

    parser = argparse.ArgumentParser()
    parser.add_argument("labels", type=Path, help="a sparse matrix, as scipy stores it")
    parser.add_argument("answer", type=Path)
    parser.add_argument("--folds", type=int, required=True)
    parser.add_argument("--seeds", type=int, required=True)
    arguments = parser.parse_args()
    Y = sp.load_npz(arguments.labels).toarray()
    X = np.zeros((len(Y), 1))
    folds, seconds = np.empty((arguments.seeds, len(Y)), np.int16), np.empty(arguments.seeds)
    for seed in range(arguments.seeds):
        start = time.process_time()
        splitter = MultilabelStratifiedKFold(arguments.folds, shuffle=True, random_state=seed)
        for fold, (_, test) in enumerate(splitter.split(X, Y)):
            folds[seed, test] = fold
        seconds[seed] = time.process_time() - start
    np.savez(arguments.answer, folds=folds, seconds=seconds)


if __name__ == "__main__":
    main()
