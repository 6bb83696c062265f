"""Hostile inputs for one library, each in its own process that may crash; see :mod:`attacks.peers`.

It runs in the environment of the library (``.venv-peers`` for those that need an older NumPy), so it imports
nothing of this project except labelweave when labelweave is tried.

    python attacks/peer_trials.py LIBRARY MODEL_FILES

It prints one line of JSON per trial: the input and the outcome.
"""

import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROWS, FEATURES, LABELS = 60, 12, 5
_SECONDS, _MEMORY = 20.0, 8 << 30


def sound() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = np.where(random.random((ROWS, FEATURES)) < 0.4, random.normal(size=(ROWS, FEATURES)), 0.0)
    Y = sp.csr_matrix((X @ random.normal(size=(FEATURES, LABELS)) > 0.2).astype(np.float64))
    return sp.csr_matrix(X), Y


class Library:
    """The functions of a library to try, with a folder for its files."""

    imports: tuple[str, ...]
    model: Any

    def __init__(self, folder: Path) -> None:
        self.folder, self.modules = folder, list(map(import_module, self.imports))

    def scores(self, X: Any) -> Any:
        return self.model.decision_function(X)

    def save(self, folder: Path) -> None:
        self.model.save(str(folder / "model"))


def _table_of(rankings: Iterable[Any]) -> Any:
    """Return the scores (ROWS, LABELS) of pairs of a label and its score for every row."""
    found = np.zeros((ROWS, LABELS))
    for row, pairs in enumerate(rankings):
        for label, score in pairs:
            found[row, label] = score
    return found


class Labelweave(Library):
    """The max-margin model of labelweave."""

    imports = ("labelweave", "labelweave.datasets")

    def fit(self, X: Any, Y: Any) -> None:
        self.model = self.modules[0].MaxMarginClassifier().fit(X, Y)

    def load(self, folder: Path) -> None:
        self.model = self.modules[0].load(folder / "model")

    def read(self, path: Path) -> None:
        data = self.modules[1].read_xmc(path)
        self.fit(data.X, data.Y)


class ScikitLearn(Library):
    """LinearSVC, one-vs-rest; models through joblib."""

    imports = ("sklearn.svm", "sklearn.multiclass", "sklearn.datasets", "sklearn.preprocessing", "joblib")

    def fit(self, X: Any, Y: Any) -> None:
        svm, multiclass, *_ = self.modules
        self.model = multiclass.OneVsRestClassifier(svm.LinearSVC()).fit(X, Y)

    def save(self, folder: Path) -> None:
        self.modules[-1].dump(self.model, folder / "model.joblib")

    def load(self, folder: Path) -> None:
        self.model = self.modules[-1].load(folder / "model.joblib")

    def read(self, path: Path) -> None:
        _, _, datasets, preprocessing, _ = self.modules
        text = path.read_bytes().split(b"\n", 1)[1]  # without the header, which the format does not have
        path.write_bytes(text)
        X, y = datasets.load_svmlight_file(str(path), multilabel=True, zero_based=True)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as LinearSVC requires
        self.fit(X, preprocessing.MultiLabelBinarizer().fit_transform(y))


class Liblinear(Library):
    """LIBLINEAR's own Python interface, for the first label."""

    imports = ("liblinear.liblinearutil", "liblinear.commonutil")

    def fit(self, X: Any, Y: Any) -> None:
        signs = np.where(np.asarray(Y[:, [0]].todense()).ravel() > 0, 1.0, -1.0)
        self.model = self.modules[0].train(signs, X, "-s 1 -q")

    def scores(self, X: Any) -> Any:
        return np.array(self.modules[0].predict([], X, self.model, "-q")[2])

    def save(self, folder: Path) -> None:
        self.modules[0].save_model(str(folder / "model"), self.model)

    def load(self, folder: Path) -> None:
        self.model = self.modules[0].load_model(str(folder / "model"))
        if self.model is None:
            raise ValueError("load_model gave None")

    def read(self, path: Path) -> None:
        lines = path.read_text().split("\n")[1:]  # without the header; the first label of each row
        path.write_text("\n".join(re.sub(r"^(\d+),\d+", r"\1", line) for line in lines))
        y, X = self.modules[1].svm_read_problem(str(path), return_scipy=True)
        self.model = self.modules[0].train(y, X, "-s 1 -q")


class Pecos(Library):
    """PECOS's linear label trees."""

    imports = ("pecos.xmc.xlinear.model",)

    def fit(self, X: Any, Y: Any) -> None:
        self.model = self.modules[0].XLinearModel.train(X.astype(np.float32), Y.astype(np.float32))

    def scores(self, X: Any) -> Any:
        return self.model.predict(X.astype(np.float32), only_topk=LABELS).todense()

    def load(self, folder: Path) -> None:
        self.model = self.modules[0].XLinearModel.load(str(folder / "model"))


class Omikuji(Library):
    """Omikuji's label trees."""

    imports = ("omikuji",)

    def fit(self, X: Any, Y: Any) -> None:
        """Train through its text format, since there is no other way."""
        path = self.folder / "data.txt"
        lines = [f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"]
        for row in range(X.shape[0]):
            labels = ",".join(map(str, np.flatnonzero(np.asarray(Y[[row]].todense()))))
            lines.append(
                " ".join([labels, *(f"{column}:{value:.9g}" for column, value in self._pairs(X, row))])
            )
        path.write_text("\n".join(lines) + "\n")
        self.read(path)

    def scores(self, X: Any) -> Any:
        return _table_of(self.model.predict(self._pairs(X, row), top_k=LABELS) for row in range(X.shape[0]))

    @staticmethod
    def _pairs(X: Any, row: int) -> list[tuple[int, float]]:
        entries = slice(X.indptr[row], X.indptr[row + 1])
        return list(zip(X.indices[entries].tolist(), X.data[entries].tolist()))  # noqa: B905

    def load(self, folder: Path) -> None:
        self.model = self.modules[0].Model.load(str(folder / "model"))

    def read(self, path: Path) -> None:
        self.model = self.modules[0].Model.train_on_data(str(path), n_threads=1)


class Napkinxc(Library):
    """napkinXC's binary relevance."""

    imports = ("napkinxc.models", "napkinxc.datasets")

    def fit(self, X: Any, Y: Any) -> None:
        self._fit(X, [np.flatnonzero(np.asarray(Y[[row]].todense())).tolist() for row in range(Y.shape[0])])

    def _fit(self, X: Any, labels: Any) -> None:
        self.model = self.modules[0].BR(str(self.folder / "model"))
        self.model.fit(X, labels)

    def scores(self, X: Any) -> Any:
        return _table_of(self.model.predict_proba(X, top_k=LABELS))

    def save(self, folder: Path) -> None:
        """Do nothing: it writes while it fits."""

    def load(self, folder: Path) -> None:
        self.model = self.modules[0].BR(str(folder / "model"))
        self.model.load()

    def read(self, path: Path) -> None:
        self._fit(*self.modules[1].load_libsvm_file(str(path)))


def broken_csr(kind: str, X: Any) -> Any:
    """Return a CSR matrix with contradictory arrays, as SciPy accepts."""
    broken = X.copy()
    place = broken.nnz // 2
    if kind == "index_beyond":
        broken.indices[place] = 10**6
    elif kind == "index_negative":
        broken.indices[place] = -(10**6)
    elif kind == "indptr_falls":
        broken.indptr[5] = broken.nnz
    elif kind == "indptr_beyond":
        broken.indptr[-1] = broken.nnz + 10**6
    elif kind == "indptr_negative":
        broken.indptr[3] = -5
    return broken


CSR_KINDS = ("index_beyond", "index_negative", "indptr_falls", "indptr_beyond", "indptr_negative")


def _filled(X: Any, value: float) -> Any:
    filled = X.copy()
    filled.data[7] = value
    return filled


SOUND = "sound rows", "sound file"
# the input of fit; words of a clear refusal
FITS: dict[str, Any] = {
    SOUND[0]: (lambda X, Y: (X, Y), ()),
    "NaN in X": (lambda X, Y: (_filled(X, np.nan), Y), ("nan", "finite", "row")),
    "infinity in X": (lambda X, Y: (_filled(X, np.inf), Y), ("inf", "finite", "row")),
    "1e300 in X": (lambda X, Y: (_filled(X, 1e300), Y), ("large", "range", "overflow", "1e+", "1e3", "inf")),
    "NaN in dense X": (lambda X, Y: (_filled(X, np.nan).toarray(), Y), ("nan", "finite", "row")),
    "fewer rows in Y": (lambda X, Y: (X, Y[:50]), ("rows", "samples", "length", "inconsistent")),
    "no rows": (lambda X, Y: (X[:0], Y[:0]), ("row", "sample", "empty")),
    "no features": (lambda X, Y: (X[:, :0], Y), ("feature", "column")),
    "labels of 7": (lambda X, Y: (X, Y * 7), ("label", "0/1", "0 or 1", "multilabel")),
    "NaN in Y": (lambda X, Y: (X, _filled(Y, np.nan)), ("nan",)),
    "text in X": (
        lambda X, Y: (np.full(X.shape, "a", dtype=object), Y),
        ("number", "string", "numeric", "float"),
    ),
    "complex X": (lambda X, Y: (X.astype(np.complex128), Y), ("complex", "number")),
    "three dimensions": (lambda X, Y: (np.zeros((ROWS, FEATURES, 2)), Y), ("dim",)),
} | {
    f"fit, CSR {kind}": (lambda X, Y, kind=kind: (broken_csr(kind, X), Y), ("ind", "csr", "sparse"))
    for kind in CSR_KINDS
}
SCORES: dict[str, Any] = {
    "predict, fewer features": (lambda X: X[:, :7], ("feature",)),
    "predict, more features": (lambda X: sp.hstack([X, X], format="csr"), ("feature",)),
    "predict, NaN": (lambda X: _filled(X, np.nan), ("nan", "finite", "row")),
    "predict, text": (
        lambda X: np.full(X.shape, "a", dtype=object),
        ("number", "string", "numeric", "float"),
    ),
} | {
    f"predict, CSR {kind}": (lambda X, kind=kind: broken_csr(kind, X), ("ind", "csr", "sparse"))
    for kind in CSR_KINDS
}
TEXT = "4 5 3\n0,1 0:1.5 3:2\n2 1:1\n0 2:-1 4:0.5\n1,2 0:1 1:1\n"
DATA: dict[str, Any] = {
    SOUND[1]: (TEXT, ()),
    "feature 10^12": (TEXT.replace("3:2", "1000000000000:2"), ("feature", "index", "1000000000000")),
    "feature -1": (TEXT.replace("3:2", "-1:2"), ("feature", "index", "-1")),
    "label 10^9": (TEXT.replace("0,1 ", "0,1000000000 "), ("label", "1000000000")),
    "value nan": (TEXT.replace("3:2", "3:nan"), ("nan", "finite")),
    "value x": (TEXT.replace("3:2", "3:x"), ("float", "number", "'x'")),
    "no colon": (TEXT.replace("3:2", "3"), ("feature:value", "'3'", "colon")),
    "header of 10^15 rows": (TEXT.replace("4 5 3", "1000000000000000 5 3"), ("rows", "header")),
    "header of letters": (TEXT.replace("4 5 3", "a b c"), ("header", "a b c")),
    "half a file": (TEXT[:31], ("number", "float", "rows", "header")),
    "no bytes": ("", ("empty", "header")),
    "zero bytes": ("4 5 3\n\x00\x00\x00\n" * 3, ("label", "float", "number", "byte")),
}
LIBRARIES = {
    "labelweave": Labelweave, "scikit-learn": ScikitLearn, "LIBLINEAR": Liblinear, "PECOS": Pecos,
    "omikuji": Omikuji, "napkinXC": Napkinxc,
}  # fmt: skip
_NOT_FROM_A_FILE = ("PECOS",)
_HEADERLESS = ("scikit-learn", "LIBLINEAR")
_NO_ROWS_IN_MEMORY = ("omikuji",)


def mutated(folder: Path, seed: int) -> None:
    """Change one file of a model: bytes flipped, cut, doubled, or numbers replaced."""
    random = np.random.default_rng(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "data.txt")
    path = files[random.integers(len(files))]
    content = bytearray(path.read_bytes())
    kind = random.integers(5)
    place = int(random.integers(len(content) + 1))
    if kind == 0:
        content = content[:place]
    elif kind == 1:
        for spot in random.integers(0, len(content), 4):
            content[spot] ^= 1 << int(random.integers(8))
    elif kind == 2:
        content[place : place + 8] = random.integers(0, 256, 8, dtype=np.uint8).tobytes()
    elif kind == 3:
        content[place : place + 8] = np.float64(random.choice([np.nan, np.inf, 1e300, -1e300])).tobytes()
    else:
        content = content[:place] + content[place // 2 : place] + content[place:]
    path.write_bytes(bytes(content))


def attempt(library: str, case: str, seed: int, folder: Path) -> dict[str, Any]:
    """Return the outcome: a result, or the type and text of a refusal."""
    warnings.simplefilter("ignore")
    peer: Any = LIBRARIES[library](folder)
    X, Y = sound()
    words: tuple[str, ...] = ()
    try:
        if case in FITS:
            change, words = FITS[case]
            X_bad, Y_bad = change(X, Y)
            peer.fit(X_bad, Y_bad)
            scores = peer.scores(X)
        elif case in DATA:
            text, words = DATA[case]
            path = folder / "data.txt"
            path.write_text(text)
            peer.read(path)
            return {"outcome": "unharmed" if case in SOUND else "answers"}
        elif case == "model file":
            peer.fit(X, Y)
            peer.save(folder)
            before = np.asarray(peer.scores(X))
            mutated(folder, seed)
            peer = LIBRARIES[library](folder)
            peer.load(folder)
            scores = np.asarray(peer.scores(X))
            same = scores.shape == before.shape and np.array_equal(scores, before)
            return {"outcome": "unharmed" if same else "answers"}
        else:
            change, words = SCORES[case]
            peer.fit(X, Y)
            scores = peer.scores(change(X))
    except MemoryError:
        return {"outcome": "memory"}
    except Exception as error:
        said = f"{type(error).__name__}: {error}".replace("\n", " ").replace(sys.prefix, "")
        # for a file any explicit refusal is clear; for an input, one that names the fault
        if case in SOUND:
            return {"outcome": "unclear", "said": said[:200]}
        kinds = ("ValueError", "TypeError", "ModelFileError", "DataFileError", "InvalidParameterError")
        is_named = any(word in said.lower() for word in words) if words else len(str(error)) > 0
        is_clear = type(error).__name__ in kinds and is_named
        return {"outcome": "refused" if is_clear else "unclear", "said": said[:200]}
    return {
        "outcome": "unharmed" if case in SOUND else "answers",
        "finite": bool(np.isfinite(np.asarray(scores, dtype=float)).all()),
    }


def trial(library: str, case: str, seed: int) -> dict[str, Any]:
    """Try in a separate process: the outcome, or that it crashed, hung or needed too much memory."""
    with tempfile.TemporaryDirectory() as folder:
        source, sink = os.pipe()
        started, child = time.monotonic(), os.fork()
        if child == 0:
            os.close(source)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            found = attempt(library, case, seed, Path(folder))
            os.write(sink, json.dumps(found).encode())
            os._exit(0)
        os.close(sink)
        ready, _, _ = select.select([source], [], [], _SECONDS)
        if not ready:
            os.kill(child, signal.SIGKILL)
        said = os.read(source, 100_000) if ready else b""
        os.close(source)
        _, status = os.waitpid(child, 0)
    if said:
        found = json.loads(said)
    elif not ready:
        found = {"outcome": "hang"}
    else:
        found = {"outcome": "crash", "status": status}
    return {"case": case, "seed": seed, "seconds": round(time.monotonic() - started, 2)} | found


def cases_of(library: str) -> list[str]:
    cases = [*FITS, *SCORES] + [case for case in DATA if library not in _NOT_FROM_A_FILE]
    if library in _HEADERLESS:
        cases = [case for case in cases if not case.startswith("header")]
    if library == "LIBLINEAR":  # one label per row, any number
        cases = [case for case in cases if "label" not in case]
    if library in _NO_ROWS_IN_MEMORY:
        cases = [case for case in cases if case in DATA]
    return cases


def main() -> None:
    library, files = sys.argv[1], int(sys.argv[2])
    LIBRARIES[library](Path())  # which imports it, once for all trials
    for case in cases_of(library):
        print(json.dumps(trial(library, case, 0)), flush=True)
    for seed in range(files):
        print(json.dumps(trial(library, "model file", seed)), flush=True)


if __name__ == "__main__":
    main()
