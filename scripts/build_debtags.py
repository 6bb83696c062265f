"""Build the bundled debtags data set from the package index of the Debian archive.

Run it on a Debian machine after ``apt-get update``::

    python scripts/build_debtags.py

Only the main component of the distribution's own suite is read: no updates, no security archive, no
third-party source.  ``--packages FILE`` reads an uncompressed ``Packages`` file instead, and ``--release
FILE`` the description of its archive.  The same index gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

FOLDER = Path(__file__).parents[1] / "src" / "labelweave" / "datasets" / "debtags"
TEST_SHARE = 0.3
MINIMUM_TRAINING_PACKAGES = 2
MINIMUM_LABEL_PACKAGES = 20
# this salt leaves every label with positives on both sides of the split
SPLIT_SALT = "debtags:"
COMMON_WORDS = """
a an and are as at be by can for from has have in into is it its not of on or other s such that the
this to using via which with you your
"""
STOP_WORDS = frozenset(COMMON_WORDS.split())
WORD = re.compile(r"(?<![a-z0-9+#])[0-9]*[a-z][a-z0-9+#]*")

Stanza = Mapping[str, str]


@dataclass(frozen=True)
class Package:
    """The stored facts of one binary package."""

    name: str
    source: str
    description: str
    features: list[str]
    tags: frozenset[str]


@dataclass(frozen=True)
class Selection:
    """The packages of each part, the selected labels and the counts of dropped items."""

    train: list[Package]
    test: list[Package]
    untagged: list[Package]
    labels: list[str]
    dropped: dict[str, int]

    @property
    def tagged(self) -> list[Package]:
        return self.train + self.test

    @property
    def packages(self) -> list[Package]:
        return self.train + self.test + self.untagged


# --- reading the index ---------------------------------------------------------------------------


def parse_stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the stanzas of a deb822 file; the lines of a folded field are joined by one space."""
    stanza: dict[str, str] = {}
    field = ""
    for line in lines:
        if not line.strip():
            if stanza:
                yield stanza
            stanza, field = {}, ""
        elif line[0] in " \t":
            if field:
                stanza[field] = f"{stanza[field]} {line.strip()}".strip()
        else:
            field, _, value = line.partition(":")
            stanza[field] = value.strip()
    if stanza:
        yield stanza


def parse_tags(field: str) -> frozenset[str]:
    """Read a Tag field, without the tags that say "not decided yet" and the facet ``special``."""
    tags = (tag.strip() for tag in field.split(","))
    return frozenset(
        tag for tag in tags if "::" in tag and not tag.endswith(":TODO") and not tag.startswith("special::")
    )


def dependency_names(stanza: Stanza) -> list[str]:
    """List the dependencies of a package: first alternatives, without versions and architectures."""
    entries = ",".join(stanza.get(field, "") for field in ("Pre-Depends", "Depends")).split(",")
    return sorted({re.split(r"[\s(|:\[]", entry.strip(), maxsplit=1)[0] for entry in entries} - {""})


def name_words(name: str) -> list[str]:
    """Split ``libpng16-16`` into ``lib`` and ``png``: parts without version numbers, lib separate."""
    parts = [re.sub(r"^lib(?=.)", "lib ", part) for part in re.split(r"[-.]", name.lower())]
    words = (word.rstrip("0123456789") for part in parts for word in part.split())
    return [word for word in words if word]


def description_words(description: str) -> list[str]:
    """List the words of a one-line description in lower case, without the most common English ones."""
    return [word for word in WORD.findall(description.lower()) if word not in STOP_WORDS]


def read_package(stanza: Stanza) -> Package:
    """Convert a stanza to a package; no feature uses the Tag field."""
    name, description = stanza["Package"], stanza.get("Description", "")
    words = name_words(name) + description_words(description)
    features = [f"word:{word}" for word in words]
    features += [f"depends:{dependency}" for dependency in dependency_names(stanza)]
    if stanza.get("Section"):
        features.append(f"section:{stanza['Section']}")
    source = (stanza.get("Source") or name).split()[0]
    return Package(name, source, description, features, parse_tags(stanza.get("Tag", "")))


# --- choosing rows, labels and features ----------------------------------------------------------


def is_test_source(source: str) -> bool:
    """Return whether a source package is on the test side, by a hash that does not depend on the index."""
    digest = hashlib.sha256((SPLIT_SALT + source).encode()).digest()
    return int.from_bytes(digest[:8], "big") < TEST_SHARE * 2**64


def select(stanzas: Iterable[Stanza], minimum_label_packages: int = MINIMUM_LABEL_PACKAGES) -> Selection:
    """Choose the labels and split the packages into train, test and untagged, each sorted by name."""
    first: dict[str, Stanza] = {}
    repeated = sum(first.setdefault(stanza["Package"], stanza) is not stanza for stanza in stanzas)
    packages = [read_package(first[name]) for name in sorted(first)]
    counts = Counter(tag for package in packages for tag in package.tags)
    labels = sorted(tag for tag, count in counts.items() if count >= minimum_label_packages)
    tagged = [package for package in packages if not package.tags.isdisjoint(labels)]
    untagged = [package for package in packages if not first[package.name].get("Tag", "").strip()]
    dropped = {
        "repeated": repeated,
        "rare_labels": len(counts) - len(labels),
        "without_label": len(packages) - len(tagged) - len(untagged),
    }
    train = [package for package in tagged if not is_test_source(package.source)]
    test = [package for package in tagged if is_test_source(package.source)]
    return drop_featureless(Selection(train, test, untagged, labels, dropped))


def drop_featureless(selection: Selection) -> Selection:
    """Drop packages that have no feature in the vocabulary of the training packages."""
    known = set(training_vocabulary(selection.train))
    train, test, untagged = (
        [package for package in part if not known.isdisjoint(package.features)]
        for part in (selection.train, selection.test, selection.untagged)
    )
    lost = len(selection.packages) - len(train) - len(test) - len(untagged)
    dropped = selection.dropped | {"without_feature": lost}
    return replace(selection, train=train, test=test, untagged=untagged, dropped=dropped)


def training_vocabulary(packages: Sequence[Package]) -> list[str]:
    """List, sorted, the features that enough training packages have."""
    vectorizer = CountVectorizer(analyzer=list, min_df=MINIMUM_TRAINING_PACKAGES)
    vectorizer.fit([package.features for package in packages])
    return [str(name) for name in vectorizer.get_feature_names_out()]


# --- packing -------------------------------------------------------------------------------------


def pack(selection: Selection, archive: Mapping[str, str]) -> dict[str, npt.NDArray[Any]]:
    """Store the data set as small integer arrays and UTF-8 text, with rows for train, test, untagged."""
    packages = selection.packages
    vocabulary = training_vocabulary(selection.train)
    vectorizer = CountVectorizer(analyzer=list, vocabulary=vocabulary)
    binarizer = MultiLabelBinarizer(classes=selection.labels, sparse_output=True)
    kept = set(selection.labels)
    labels = binarizer.fit_transform([package.tags & kept for package in selection.tagged])
    _, source_ids = np.unique([package.source for package in packages], return_inverse=True)
    counts = sp.csr_array(vectorizer.transform([package.features for package in packages]))
    row_counts = [len(part) for part in (selection.train, selection.test, selection.untagged)]
    return {
        "archive": text_array([json.dumps(dict(archive), sort_keys=True)]),
        "row_counts": np.array(row_counts, np.int32),
        "names": text_array([package.name for package in packages]),
        "source_ids": compact(source_ids),
        "descriptions": text_array([package.description for package in packages]),
        "feature_names": text_array(vocabulary),
        "label_names": text_array(selection.labels),
        "parents": text_array([f"{label.partition('::')[0]} {label}" for label in selection.labels]),
        **packed_rows("features", counts),
        "features_counts": compact(counts.data),
        **packed_rows("labels", sp.csr_array(labels)),
    }


def packed_rows(prefix: str, matrix: sp.csr_array) -> dict[str, npt.NDArray[Any]]:
    """Store the pattern of a CSR matrix as row lengths and column indices."""
    matrix.sort_indices()
    return {
        f"{prefix}_lengths": compact(np.diff(matrix.indptr)),
        f"{prefix}_indices": compact(matrix.indices),
    }


def compact(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Store non-negative integers in the smallest little-endian type that holds them."""
    kind = np.min_scalar_type(int(values.max(initial=0)))
    return values.astype(kind.newbyteorder("<"))


def text_array(lines: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Store lines as newline-joined UTF-8 bytes."""
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write a compressed npz file whose bytes depend only on the arrays, not on the clock."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draft = Path(folder) / path.name
        with zipfile.ZipFile(draft, "w") as archive:
            for name, values in arrays.items():
                member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                member.create_system = 3
                stream = io.BytesIO()
                np.lib.format.write_array(stream, values, version=(1, 0), allow_pickle=False)
                archive.writestr(member, stream.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
        os.replace(draft, path)


def write_text(path: Path, text: str) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draft = Path(folder) / path.name
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)


README = """\
# debtags: Debian packages and their tags

What a package is, does and works with, as faceted tags such as `role::program` or
`works-with::audio`, to be predicted from its name, its one-line description, its dependencies
and its section. Built by `scripts/build_debtags.py`.

## Source

{archive_lines}

The names, sections, dependencies, one-line descriptions and tags are taken as facts from the
package index that the Debian project publishes. The tags were given by Debian's volunteers in the
Debtags effort, some of them by rules that look at package names; the descriptions were written by
the packages' maintainers.

## Rows

| part | packages | source packages |
|---|---:|---:|
{part_lines}

Rows are sorted by name in each part. Of a package listed more than once the first is kept
({repeated} stanzas skipped). All packages of one source package are on one side of the split,
which is a hash of the source's name. The untagged packages carry no tag at all in the index.

Dropped, since an all-negative row would be untrue: {without_label} packages whose every tag was
dropped. Packages without a feature of the vocabulary are dropped too: {without_feature}.

## Features

{n_features} features: {kinds}.

- `word:` counts the parts of the package's name (without version numbers; `lib` split off) and the
  words of the one-line description;
- `depends:` is 1 for each name in Depends and Pre-Depends (the first alternative, without versions);
- `section:` is 1 for the section.

A feature is kept when {minimum_df} or more training packages have it. Nothing comes from the Tag
field. The file holds the counts; `load_debtags` weights them by TF-IDF fitted on the training rows
and scales rows to unit length.

## Labels

{n_labels} tags, each on {minimum_labels} or more packages; {labels_per_row:.2f} a tagged package.
Dropped: {rare_labels} rarer tags, the tags ending in `:TODO` ("a tag of this facet is missing") and,
where present, the facet `special`. The taxonomy has two levels: {n_facets} facets (`role`) over the
tags (`role::program`).
"""


def readme(selection: Selection, vocabulary: Sequence[str], archive: Mapping[str, str]) -> str:
    """Describe the data set with its own numbers."""
    parts = {"train": selection.train, "test": selection.test, "untagged": selection.untagged}
    kinds = Counter(name.partition(":")[0] for name in vocabulary)
    kept = set(selection.labels)
    return README.format(
        archive_lines="\n".join(f"- {key}: {value}" for key, value in archive.items()),
        part_lines="\n".join(
            f"| {name} | {len(part)} | {len({package.source for package in part})} |"
            for name, part in parts.items()
        ),
        n_features=len(vocabulary),
        kinds=", ".join(f"{count} `{kind}:`" for kind, count in sorted(kinds.items())),
        minimum_df=MINIMUM_TRAINING_PACKAGES,
        n_labels=len(selection.labels),
        minimum_labels=MINIMUM_LABEL_PACKAGES,
        labels_per_row=sum(len(package.tags & kept) for package in selection.tagged) / len(selection.tagged),
        n_facets=len({label.partition("::")[0] for label in selection.labels}),
        **selection.dropped,
    )


# --- the archive ---------------------------------------------------------------------------------


def apt_target(codename: str | None) -> dict[str, str]:
    """Find apt's record of the main component of the distribution's own suite."""
    command = ["apt-get", "indextargets", "Created-By: Packages", "Origin: Debian", "Component: main"]
    architecture = run(["dpkg", "--print-architecture"]).strip()
    targets = [
        target
        for target in parse_stanzas(run(command).splitlines())
        if target["Label"] == "Debian" and target["Architecture"] == architecture
    ]
    # the suites of updates, security and backports carry the distribution's codename and a suffix
    wanted = [t for t in targets if (t["Codename"] == codename if codename else "-" not in t["Codename"])]
    if len(wanted) != 1:
        found = ", ".join(target["Codename"] for target in targets) or "none"
        raise SystemExit(
            f"Expected one main index of Debian, found {len(wanted)} of: {found}. Use --codename."
        )
    return wanted[0]


def release_path(target: Stanza) -> Path:
    """Find the Release file next to an index in apt's lists."""
    stem = target["Filename"].partition("_" + target["MetaKey"].replace("/", "_"))[0]
    return next(path for path in (Path(f"{stem}_InRelease"), Path(f"{stem}_Release")) if path.exists())


def archive_facts(release: str) -> dict[str, str]:
    """Read the publisher of a Release file, its version and its date."""
    paragraphs = parse_stanzas(release.splitlines())
    fields = next((stanza for stanza in paragraphs if "Suite" in stanza), {})
    keys = ("Origin", "Suite", "Codename", "Version", "Date")
    return {key.lower(): fields.get(key, "unknown") for key in keys}


def run(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def read_archive(arguments: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Read the text of the index and the facts of its archive."""
    if arguments.packages:
        release = arguments.release.read_text(encoding="utf-8") if arguments.release else ""
        return arguments.packages.read_text(encoding="utf-8"), archive_facts(release)
    target = apt_target(arguments.codename)
    facts = archive_facts(release_path(target).read_text(encoding="utf-8"))
    facts |= {"component": target["Component"], "architecture": target["Architecture"]}
    return run(["/usr/lib/apt/apt-helper", "cat-file", target["Filename"]]), facts


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--packages", type=Path, help="an uncompressed Packages file instead of apt's")
    parser.add_argument("--release", type=Path, help="the Release file that goes with --packages")
    parser.add_argument("--codename", help="the suite to read, such as bookworm")
    parser.add_argument("--output", type=Path, default=FOLDER, help="the folder to write to")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    index, archive = read_archive(arguments)
    selection = select(parse_stanzas(index.split("\n")))
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_arrays(arguments.output / "debtags.npz", pack(selection, archive))
    write_text(
        arguments.output / "README.md", readme(selection, training_vocabulary(selection.train), archive)
    )
    print(json.dumps(archive | selection.dropped, indent=1))


if __name__ == "__main__":
    main()
