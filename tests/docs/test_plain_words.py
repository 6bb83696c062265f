"""Pages and messages have none of the phrases that readers stop at; CONTRIBUTING.md lists better ones."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
    ROOT / "tests" / "contracts" / "messages.txt",
]
PER = "class|column|entry|fold|kernel|label|line|member|node|number|row|score|second|threshold|weight"
WORDS = {
    "manners": "scikit-learn-compatible",
    rf"({PER})(e?s)? an? (class|column|entry|fold|label|member|node|row)": "per",
    "left[- ]out": "out-of-fold, held-out, omitted",
    "(that|which) (they|it|he) did not see": "out-of-fold, held-out",
    "(low|high) is good": "lower is better, higher is better",
    "in the form of": "the type of",
    "(go|goes|gone|going|went) on (from|to|with)": "resume, continue from",
    "had better": "where the model abstains",
    "known not to hold": "known limitations",
    "says? (nothing|anything)|of which nothing": "not observed",
    "mend(s|ed|ing)?": "fix, recover",
    "at hand": "available, loaded",
    "say(s|ing)? so|said so": "warn, print",
    "beside": "compared with, next to",
    "(exit|ends?) with the code|code 2": "exits with status 2",
    "known in part": "partially observed",
    "likel(ier|iest)": "more likely, most likely",
    "doubt(s|ful)?": "flip probability, uncertain",
    "hang(s|ing)? (in|together)": "in, are correlated",
    "anew": "again",
    "killed[?]": "if the process is killed",
    "in the place of": "instead of",
    r"(minim|maxim|optim|normal|standard|factor|general)is(e|es|ed|ing|ation|ations)": "American: -ize",
    "behaviour|colour|favour|labell(ed|ing)|neighbour|travell(ed|ing)": "American spelling",
    "towards": "toward",
    "(as it|as they) comes?": "with default parameters",
    "nobody looked": "unknown, not checked",
    "(go|put)s? side by side": "concatenate",
    "shared out": "distributed",
    "unsure": "uncertain",
    "hyper-parameters?": "hyperparameter",
    "the rank binds": "the bound on the rank is active",
    "(kernel|covariance|scale|model|vector|width) each": "one per ...",
    "(what|which) (is|are|was|were) chosen when": "how they are chosen",
    "(are|is|on a) level with": "equal to",
}


def prose(page):
    """Return a page without program output and without the pairs of the style guide."""
    blocks = r"^```(console|text)\n.*?^```$|^\| not \| but \|$.*?(?=\n\n)|^<!-- recorded: .*?^<!-- end -->$"
    return re.sub(blocks, "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def found(text):
    """List the phrases, each with its context and what to write instead."""
    return [
        f"{text[max(0, match.start() - 30) : match.end() + 30]!r}: write {instead!r}"
        for word, instead in WORDS.items()
        for match in re.finditer(rf"(?<![\w`]){word}(?![\w`])", text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_words_are_plain(page):
    assert found(prose(page)) == []


def test_the_pairs_of_the_style_guide_are_found():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (.*) \| (.*) \|$", text.partition("| not | but |")[2].partition("\n\n")[0], re.MULTILINE
    )
    pairs = [row for row in rows if not row[0].startswith("--")]
    assert len(pairs) == 20
    assert all(found(instead) == [] for _, instead in pairs)
    assert sum(found(word) != [] for word, _ in pairs) >= 14
