"""The guess for the first half of a file's rows equals the guess for the second."""

import json
import random
import warnings

import pytest

from labelweave.datasets import TableColumns
from labelweave.datasets.table_files import raw_tables
from labelweave.datasets.table_labels import with_layout

N_ROWS = 80
TAGS = ["sql", "python", "git", "c", "pandas"]
LABELS = {
    "classes": lambda tags: tags[0],
    "commas": ", ".join,
    "bars": "|".join,
    "blanks": " ".join,
    "quotes": lambda tags: "; ".join(f"'{tag}'" for tag in tags),
    "brackets": lambda tags: "".join(f"[{tag}]" for tag in tags),
    "lists": str,
    "words": lambda tags: " and ".join([", ".join(tags[:-1]), tags[-1]][len(tags) == 1 :]),
    "calls": lambda tags: f"List({', '.join(tags)})",
    "bits": lambda tags: "".join(str(int(tag in tags)) for tag in TAGS),
}
FEATURES = {
    "words": lambda k, source: " ".join(source.choices(["red", "blue", "tall", "wide", "old"], k=6)),
    "kinds": lambda k, source: source.choice(["red", "blue", "tall"]),
    "numbers": lambda k, source: round(source.gauss(0, 1), 4),
    "counts": lambda k, source: source.randint(0, 9),
    "gaps": lambda k, source: "" if k % 5 == 0 else round(source.random(), 3),
    "decimal commas": lambda k, source: f"{source.randint(0, 9)},{source.randint(10, 99)}",
    "codes": lambda k, source: f"p{k:04d}",
    "dates": lambda k, source: f"2024-{source.randint(1, 12):02d}-{source.randint(1, 28):02d}",
    "days first": lambda k, source: f"{1 + k % 28}/{source.randint(1, 12)}/2024",
    "named months": lambda k, source: f"{source.choice(['Jan', 'May'])} {1 + k % 28}, 2024",
}


def columns(label, seed):
    """Return a column of labels and three kinds of features in turn."""
    source, names = random.Random(seed), [*FEATURES]
    made = {name: [FEATURES[name](k, source) for k in range(N_ROWS)] for name in (names * 2)[seed % 10 :][:3]}
    made["x"] = [source.random() for _ in range(N_ROWS)]
    cells = [LABELS[label](source.sample(TAGS, source.randint(1, 3))) for _ in range(N_ROWS)]
    return {**made, "tags": cells}


def write(path, table, rows):
    lines = [dict(zip(table, row, strict=True)) for row in [*zip(*table.values(), strict=True)][rows]]
    if path.suffix == ".json":
        path.write_text(json.dumps(lines))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        quoted = [[f'"{cell}"' for cell in line.values()] for line in lines]
        path.write_text("\n".join(",".join(line) for line in [[*table], *quoted]) + "\n")


def guesses(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = next(raw_tables(path))
        found = with_layout(table, TableColumns(labels="tags"))[0]
        return found.label_separator, found.resolved(table)


@pytest.mark.parametrize(("seed", "suffix"), [(0, "csv"), (100, "jsonl"), (203, "json")])
@pytest.mark.parametrize(("place", "label"), [*enumerate(LABELS)])
def test_halves_of_thirty_files_are_guessed_alike(tmp_path, seed, suffix, place, label):
    path, table = tmp_path / f"t.{suffix}", columns(label, seed + place)
    found = []
    for rows in (slice(None), slice(N_ROWS // 2), slice(N_ROWS // 2, None)):
        write(path, table, rows)
        found.append(guesses(path))
    assert found[0] == found[1] == found[2]
    assert (found[0][0] is None) == (label in ("classes", "lists"))
