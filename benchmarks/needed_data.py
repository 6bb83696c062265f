"""What a command says where the data that it needs are not at hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path

__all__ = ["SOURCES", "needs_data"]

SOURCES = {
    "mulan": "multi-label sets in Mulan's format, a folder each with NAME-train.arff, NAME-test.arff and "
    "NAME.xml (mulan.sourceforge.net; flags with all rows in NAME.arff)",
    "rcv1": "three subsets of RCV1-v2 (LIBSVM's page of multi-label data) as rcv1-subset1.npz to 3: arrays "
    "X_data, X_indices, X_indptr and X_shape of the features, and the same with Y of the labels",
    "awa": "Animals with Attributes (cvml.ista.ac.at/AwA): PHOG features, classes and the 50 x 85 attributes",
    "usps": "handwritten digits of USPS (LIBSVM's page of multi-class data) as usps.npz: X_train, y_train, "
    "X_test and y_test, gray values as 1,000 times their distance from -1",
    "satimage": "Statlog's Landsat images (the UCI repository), the 4,435 training rows first",
    "imclef07a": "the hierarchical ARFF files of ImCLEF07A (kt.ijs.si, data for hierarchical classification)",
    "hmc": "the hierarchical ARFF files of yeast genes (Clus' page of hierarchical multi-label data), "
    "NAME.train.arff, NAME.valid.arff and NAME.test.arff",
    "wordnet": "WordNet 3.0's data.noun: Debian's wordnet-base, or WordNet's archive with --dict",
}


def needs_data(main: Callable[[], None]) -> Callable[[], None]:
    """Make a command end with a sentence where its data are missing.

    Parameters
    ----------
    main : callable
        The command.

    Returns
    -------
    callable
        The same, but for files of data that are not found.
    """

    @wraps(main)
    def command() -> None:
        try:
            main()
        except (FileNotFoundError, ValueError) as error:
            place = str(getattr(error, "filename", None) or error)
            is_missing = isinstance(error, FileNotFoundError) or "found no such file" in place
            parts = Path(place.partition(": found")[0].partition(" lacks")[0]).parts
            known = next((name for name in SOURCES if name in parts), None)
            if not is_missing or known is None:
                raise
            raise SystemExit(
                f"The data of this command are not at hand: {place.rstrip('.')}. They are {SOURCES[known]}; "
                "put them there, or show what is recorded with --show-recorded if the command has it."
            ) from None

    return command
