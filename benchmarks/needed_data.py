"""The message of a command whose data or programs are missing."""

import subprocess
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path

# by a folder of the data, or by the name of a file
SOURCES = {
    "study_envelope.csv": "a table with the columns metric, set, best, median and a method each (RFPCT, "
    "RFDTBR, BR, ECCJ48, EBRJ48, Ada), computed from the results that Bogatinovski, Todorovski, Dzeroski "
    "and Kocev published with their comprehensive comparative study of multi-label classification methods "
    "(2022)",
    "data.noun": "WordNet 3.0's data.noun (https://wordnet.princeton.edu; Debian's wordnet-base puts it "
    "into /usr/share/wordnet; name another folder with --dict)",
    "mulan": "multi-label sets in Mulan's format (http://mulan.sourceforge.net/datasets-mlc.html), a folder "
    "each with NAME-train.arff, NAME-test.arff and NAME.xml",
    "rcv1": "subsets 1 to 3 of RCV1-v2 with its topics (LIBSVM's page of multi-label data, "
    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel.html), all 6,000 rows of each: "
    "rcv1-subset1.npz to 3 with the CSR arrays X_data, X_indices, X_indptr and X_shape of the features "
    "(6,000 x 47,236), and the same with Y of the labels (6,000 x 101)",
    "awa": "Animals with Attributes (https://cvml.ista.ac.at/AwA): awa-phog.npz with X, PHOG features "
    "(30,475 x 252), class_index of each row, classes and predicates, their names, class_predicate_binary "
    "(50 x 85), and test_classes, the names of ten",
    "usps": "handwritten digits of USPS (LIBSVM's page of multi-class data, "
    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html): usps.npz with X_train "
    "(7,291 x 256), y_train, X_test (2,007 x 256) and y_test, where X is 1,000 (gray value + 1) as whole "
    "numbers from 0 to 2,000",
    "satimage": "Statlog's Landsat images (the UCI repository's Statlog (Landsat Satellite), "
    "https://archive.ics.uci.edu): satimage.npz with X (6,435 x 36) and y, the classes' names, the 4,435 "
    "rows of sat.trn before those of sat.tst",
    "imclef07a": "medical images of ImageCLEF 2007 as hierarchical ARFF (Dimitrovski, Kocev, Loskovska and "
    "Dzeroski, Hierarchical annotation of medical images, 2011; data for hierarchical classification at "
    "http://kt.ijs.si/DragiKocev): ImCLEF07A_Train.arff and ImCLEF07A_Test.arff",
    "hmc": "hierarchical ARFF of yeast genes (Clus' data for hierarchical multi-label classification, "
    "https://dtai.cs.kuleuven.be/clus/hmcdatasets): NAME.train.arff, NAME.valid.arff and NAME.test.arff",
}
_PEERS = ".venv-peers"


def first_file(folder: Path, pattern: str) -> Path:
    """Find a file of data by a pattern."""
    found = min(folder.glob(pattern), default=None)
    if found is None:
        raise FileNotFoundError(f"{folder} lacks {pattern}.")
    return found


def missing(error: Exception) -> str:
    """Describe the missing data or programs of an error, and where they belong."""
    place = str(getattr(error, "filename", None) or error)
    if not isinstance(error, FileNotFoundError) and "found no such file" not in place:
        return ""
    if _PEERS in place:
        return (
            f"This command runs other libraries in an environment of their own, {_PEERS}, which is not at "
            "hand; make it with `python benchmarks/peers/make_environment.py`."
        )
    parts = Path(place.partition(": found")[0].partition(" lacks")[0]).parts
    known = next((name for name in SOURCES if name in parts), None)
    if known is None:
        return ""
    return f"These data are not at hand: {place.rstrip('.')}. They are {SOURCES[known]}; put them there."


def needs_data(main: Callable[[], int | None]) -> Callable[[], int | None]:
    """Make a command print a sentence and exit with status 2 if its data or programs are missing."""

    @wraps(main)
    def command() -> int | None:
        try:
            return main()
        except subprocess.CalledProcessError as error:
            if error.returncode != 2:
                raise
            raise SystemExit(2) from None  # a command that this one runs has printed the reason
        except (FileNotFoundError, ValueError) as error:
            said = missing(error)
            if not said:
                raise
            print(f"{said} What is recorded: `python -m benchmarks`.", file=sys.stderr)
            raise SystemExit(2) from None

    return command
