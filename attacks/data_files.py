"""Corrupt data files of every format; readers must return everything, or refuse the file in one line.

    python -m attacks.data_files --files 4000

A file is changed where its format has meaning: numbers become huge; words become keywords, quotation marks or
escapes; tokens and lines are lost, doubled and swapped; bytes flip; ends are cut.  Each file is read in a
process with a memory limit.  Violations are a dead process, a read of more than five seconds or 512 MiB, an
error that is not the library's own, and an incomplete result.
"""

import gzip
import re
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from benchmarks.frame import command, flag, quiet
from click.testing import CliRunner

from attacks.public_names import is_of_library
from attacks.trials import allow_memory, trials, within
from labelweave.app.cli.program import main as labelweave
from labelweave.datasets import LabeledData, read_any

_SECONDS = 5
_MOST_BYTES = 512 << 20
_LONGEST_MESSAGE = 2000
_CONVERTED = 10  # one in so many goes through the command line
_PART = re.compile(rb"\s+|[\w.+-]+|.", re.DOTALL)


def _parquet() -> bytes:
    """Write a table with columns of text, numbers, categories and lists, some cells empty."""
    from pyarrow import BufferOutputStream, array, parquet, table

    columns = {
        "words": ["a red word", None, "blue"] * 4,
        "size": [0.5, 2.0, 1e3] * 4,
        "kind": array(["k", "m", None] * 4).dictionary_encode(),
        "tags": [["x", "y"], [], None] * 4,
    }
    stream = BufferOutputStream()
    parquet.write_table(table(columns), stream)
    return bytes(stream.getvalue())


class Kind(NamedTuple):
    """A format: the name and the content of its files, and the options of its reader."""

    suffix: str
    text: bytes
    options: dict[str, Any]


_ARFF_HEAD = b"""@relation 'r: -C -2'
@attribute 'size in cm' numeric
@attribute color {red,'light blue',green}
@attribute motif {YES,NO}
@attribute id {a,b,c,d,e,f,g,h,i,j,k,l}
@attribute up {0,1}
@attribute down {0,1}
@data
"""
_ROWS = range(12)
KINDS = {
    "mulan": Kind(
        ".arff",
        _ARFF_HEAD + b"".join(b"%d.5,'light blue',YES,%c,1,?\n?,red,NO,a,0,1\n" % (k, 97 + k) for k in _ROWS),
        {},
    ),
    "sparse mulan": Kind(
        ".arff",
        _ARFF_HEAD + b"".join(b"{0 %d,1 'light blue',3 %c,5 1}\n{0 ?,4 ?}\n" % (k, 97 + k) for k in _ROWS),
        {},
    ),
    "hierarchical_arff": Kind(
        ".arff",
        b"@relation r\n@attribute f numeric\n@attribute hue {red,blue}\n"
        b"@attribute class hierarchical 1,1/2,1/2/3,2\n@data\n"
        + b"0.5,red,1/2@2\n?,blue,1/2/3\n1,red,?\n"
        * 4,
        {},
    ),
    "xmc": Kind(".txt", b"12 5 4\n" + b"0,2 0:0.5 3:1.25\n 1:0.75\n3 2:-1e-3 4:7\n" * 4, {}),
    "svmlight": Kind(".svm", b"0,2 1:0.5 4:1.25\n1 2:0.75\n 2:1.0 # a comment\n" * 4, {}),
    "csv": Kind(
        ".csv",
        b"id,words,size,kind,tags\n"
        + b"".join(b'%d,"a ""red"" word",%d.5,k%d,x|y\n%da,\'=1,2,k,?\n' % (k, k, k % 2, k) for k in _ROWS),
        {"labels": "tags", "label_separator": "|"},
    ),
    "tsv": Kind(
        ".tsv",
        b"words\ta\tb\tsize\n" + b"a red word\t0\t1\t2\nblue\t1\t?\t1e3\n" * 12,
        {"labels": ["a", "b"]},
    ),
    "json": Kind(
        ".jsonl",
        b'{"words": "a \\ud83d\\ude00 word", "size": 1.5, "tags": ["x", "y"]}\n'
        b'{"words": null, "size": 2, "tags": []}\n{"words": "red", "size": -1e3, "tags": null}\n' * 6,
        {"labels": "tags"},
    ),
    "parquet": Kind(".parquet", _parquet(), {"labels": "tags"}),
}
_WORDS = (
    b"? -1 1e999 nan inf 0x10 1_0 1000000000000 1000000000 4294967296 1.7976931348623157e308 null true qid:1 "
    b'@attribute @data @relation hierarchical -C {"a":1} \\ud800 \\\' \'\' "" \' " \\ { } ] , : @ / % #'
)
_REPEATED = [(b"9", 5000), (b" ", 3000), (b"[", 3000), (b"1/", 300), (b"word ", 500)]
_BYTES = [b"", b"\n", b"\r", b"\r\n", b"\t", b"\x00", b"\x1b[31m", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80"]
_HOSTILE = [*_WORDS.split(), *(part * times for part, times in _REPEATED), *_BYTES]


def changed(text: bytes, random: np.random.Generator) -> bytes:
    for _ in range(random.integers(1, 5)):
        text = CHANGES[random.integers(len(CHANGES))](text, random)
    return text


def _hostile_part(text: bytes, random: np.random.Generator) -> bytes:
    parts = _PART.findall(text) or [b""]
    parts[random.integers(len(parts))] = _HOSTILE[random.integers(len(_HOSTILE))]
    return b"".join(parts)


def _inserted(text: bytes, random: np.random.Generator) -> bytes:
    place = random.integers(len(text) + 1)
    return text[:place] + _HOSTILE[random.integers(len(_HOSTILE))] + text[place:]


def _moved_parts(text: bytes, random: np.random.Generator) -> bytes:
    parts = _PART.findall(text) or [b""]
    one, other = random.integers(len(parts), size=2)
    parts[one], parts[other] = parts[other], parts[one] if random.random() < 0.5 else parts[other]
    return b"".join(parts)


def _moved_lines(text: bytes, random: np.random.Generator) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    one, other = random.integers(len(lines), size=2)
    copies = int(random.choice([0, 0, 2, 3000]))
    lines[one], lines[other] = lines[other], lines[one]
    lines[one] *= copies if random.random() < 0.7 else 1
    return b"".join(lines)


def _flipped(text: bytes, random: np.random.Generator) -> bytes:
    found = bytearray(text or b"x")
    for place in random.integers(len(found), size=random.integers(1, 4)):
        found[place] = random.integers(256)
    return bytes(found)


def _cut(text: bytes, random: np.random.Generator) -> bytes:
    return text[: random.integers(len(text) + 1)]


CHANGES: list[Callable[[bytes, np.random.Generator], bytes]] = [
    *[_hostile_part] * 3,
    *[_inserted, _moved_parts, _moved_lines, _flipped, _cut],
]


def written(seed: int, folder: Path) -> tuple[Path, Kind]:
    """Write the broken file of a seed, one in eight compressed."""
    random = np.random.default_rng(seed)
    kind = list(KINDS.values())[seed % len(KINDS)]
    content, ending = changed(kind.text, random), ""
    if random.random() < 0.125:
        content, ending = gzip.compress(content), ".gz"
        content = _flipped(content, random) if random.random() < 0.5 else content
    path = folder / f"t{kind.suffix}{ending}"
    path.write_bytes(content)
    return path, kind


def violation(seed: int, folder: Path) -> str | None:
    """Read the broken file of a seed; return what is wrong with the outcome."""
    path, kind = written(seed, folder)
    try:
        with quiet(Warning):
            if seed // len(KINDS) % _CONVERTED == 0:
                return _converted(path, folder)
            return _not_whole(read_any(path, **kind.options))
    except ValueError as error:
        said, last = str(error), traceback.extract_tb(error.__traceback__)[-1]
        if "\n" in said or len(said) > _LONGEST_MESSAGE:
            return f"a message of {len(said)} characters: {said[:100]!r}"
        return None if is_of_library(last.filename) else f"a bare {type(error).__name__} of {last}: {said}"
    except (Exception, SystemExit) as error:
        return f"a bare {type(error).__name__}: {error} at {traceback.extract_tb(error.__traceback__)[-1]}"


def _not_whole(data: LabeledData) -> str | None:
    entries = data.X.data if sp.issparse(data.X) else data.X
    if np.isinf(entries).any():
        return "infinite features"
    names = data.feature_names
    if names is not None and len(set(names.tolist())) < len(names):
        return "two features of the same name"
    return None


def _converted(path: Path, folder: Path) -> str | None:
    """Convert a file with the command line, which exits with status 0, or 2 and a reason."""
    found = CliRunner().invoke(labelweave, ["convert", str(path), str(folder / "out.arff")])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        return f"a bare {type(found.exception).__name__} from the command line: {found.exception}"
    if found.exit_code not in (0, 2):
        return f"exit code {found.exit_code}"
    if found.exit_code == 2 and not found.stderr.startswith("labelweave: "):
        return f"not in a line of labelweave: {found.stderr[:100]!r}"
    return "an escape on the terminal" if "\x1b" in found.stderr else None


def read_whole(folder: Path) -> list[LabeledData]:
    found = []
    for kind in KINDS.values():
        path = folder / f"whole{kind.suffix}"
        path.write_bytes(kind.text)
        found.append(read_any(path, **kind.options))
    return found


@contextmanager
def _reader() -> Iterator[Callable[[int], str | None]]:
    with tempfile.TemporaryDirectory() as folder:
        read_whole(Path(folder))  # lazy imports do not count as memory of a file
        allow_memory(_MOST_BYTES)

        def trial(seed: int) -> str | None:
            with within(_SECONDS):
                return violation(seed, Path(folder))

        yield trial


def attack(seeds: range) -> Iterator[str]:
    """Read the broken files of seeds; return the violations, one line each."""
    for seed, found in trials(_reader, seeds, 4 * _SECONDS):
        if found is not None:
            yield f"seed {seed}, {list(KINDS)[seed % len(KINDS)]}: {found}"


@command(files=flag(4000, "broken files, of all formats in turn"), seed=flag(0, "of the first file"))
def main(chosen: Any) -> None:
    found = list(attack(range(chosen.seed, chosen.seed + chosen.files)))
    print(f"{chosen.files} files, {len(found)} violations", *found, sep="\n  ")
    raise SystemExit(bool(found))
