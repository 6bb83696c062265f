"""A table of tickets
==================

Learn from a table of support tickets: texts, categories, numbers, and tags, a third of which are missing.

The script makes the table, with a seed.  A blank cell in the column of tags means that the tags are unknown;
a single separator means that the ticket has no tag.  If blanks are read as unknown, they add nothing to the
loss; if they are read as "no tag", the model predicts too few tags.  Each model is saved, loaded and
described in a report.  Run ``python examples/ticket_table.py [FOLDER]``; it takes some seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/ticket_table.png'
from __future__ import annotations

import csv
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import labelweave
from labelweave import MaxMarginClassifier, TableModel, datasets, metrics
from labelweave.report import write_report

TAGS = {
    "login": "password login account locked reset code",
    "billing": "invoice charge refund card payment price",
    "shipping": "parcel delivery late address courier box",
    "bug": "crash error broken screen freeze failed",
    "mobile": "phone app android tablet touch install",
    "urgent": "today now asap blocked waiting hours",
}
FILLER = re.split(" ", "please help the order hello thanks when can you with my since a it we")
BLANK = 0.33


def main(folder: str | None = None) -> dict[str, float]:
    """Make the table, fit two models, and compare them on fully tagged tickets."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(folder or scratch)
        write_tickets(place / "tickets.csv", 1200, seed=0, blank=BLANK)
        write_tickets(place / "new.csv", 600, seed=1, blank=0.0)
        found = {meaning: learn(place, meaning) for meaning in ("unknown", "none")}
        pages = sorted(page.name for page in place.glob("*.html"))
    print(f"{BLANK:.0%} of the tag cells are blank; micro-F1 on 600 new tickets:")
    for meaning, score in found.items():
        print(f"  blanks read as {meaning:8s} {score:.3f}")
    print(f"pages: {', '.join(pages)}")
    return found


def write_tickets(path: Path, count: int, seed: int, blank: float) -> None:
    """Write a table with the columns ticket, text, channel, minutes and tags."""
    random = np.random.default_rng(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["ticket", "text", "channel", "minutes", "tags"])
        for number in range(count):
            tags = [tag for tag in TAGS if random.random() < 0.3]
            words = [str(random.choice(TAGS[tag].split())) for tag in tags for _ in range(2)]
            words += random.choice([*FILLER, *" ".join(TAGS.values()).split()], 4).tolist()
            words += random.choice(FILLER, 10).tolist()
            channel = "app" if "mobile" in tags else str(random.choice(["mail", "phone", ""]))
            minutes = (
                "" if random.random() < 0.1 else round(random.gamma(2.0, 20.0 - 12.0 * ("urgent" in tags)))
            )
            given = ",".join(tags) or ","  # a single separator: no tags
            shown = "" if random.random() < blank else given
            text = " ".join(random.permutation(words))
            rows.writerow([f"T{seed}{number:05d}", text, channel, minutes, shown])


def learn(place: Path, meaning: Any) -> float:
    """Fit a model to the frame, save and load it, evaluate it on new tickets, and write a report."""
    kinds: Any = {"text": "text", "categorical": "channel", "numeric": "minutes"}
    columns = datasets.TableColumns(
        labels="tags", label_separator=",", empty_labels=meaning, id="ticket", **kinds
    )
    tickets = datasets.read_table_columns(place / "tickets.csv", columns)
    model = TableModel(MaxMarginClassifier(C=0.3), missing_numeric="mean", **kinds).fit(tickets.X, tickets.Y)
    model.save(place / f"{meaning}.lw")
    model = labelweave.load(place / f"{meaning}.lw")
    new = datasets.read_table_columns(place / "new.csv", columns, label_names=model.label_names_.tolist())
    write_report(model, new.X, new.Y, place / f"{meaning}.html", row_names=new.row_ids)
    return float(metrics.f1_score(new.Y, model.predict(new.X), average="micro"))


if __name__ == "__main__":
    main(*sys.argv[1:])
