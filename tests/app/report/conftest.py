"""Fitted models, rows to report on, and parsed pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from labelweave import LabelMatrix, MaxMarginClassifier
from labelweave.datasets import make_text_like
from labelweave.report import ReportOptions, write_report

VOID = {"meta", "link", "img", "br", "hr", "input", "col"}


@dataclass
class Page(HTMLParser):
    """A page: its tags with their attributes, and its text."""

    html: str
    tags: list = field(default_factory=list)
    pieces: list = field(default_factory=list)
    still_open: list = field(default_factory=list)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.still_open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.still_open.pop() == tag

    def handle_data(self, data):
        if not self.still_open or self.still_open[-1] not in ("script", "style"):
            self.pieces.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.pieces).split())

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def report(tmp_path):
    def call(model, X, y, row_names=None, **options):
        path = tmp_path / "report.html"
        write_report(model, X, y, path, row_names=row_names, options=ReportOptions(**options))
        return Page(path.read_text(encoding="utf-8"))

    return call


@pytest.fixture(scope="session")
def data():
    found = make_text_like(300, 80, 7, labels_per_row=2, words_per_row=12, random_state=1)
    return found.X, LabelMatrix(found.Y.positives, None, [f"tag {k}" for k in range(7)])


@pytest.fixture(scope="session")
def model(data):
    X, Y = data
    frame = pd.DataFrame(X.toarray()[:200], columns=[f"word{j}" for j in range(X.shape[1])])
    return MaxMarginClassifier().fit(frame, Y[np.arange(200)])


@pytest.fixture(scope="session")
def rows(data):
    X, Y = data
    frame = pd.DataFrame(X.toarray()[200:], columns=[f"word{j}" for j in range(X.shape[1])])
    return frame, Y[np.arange(200, 300)]
