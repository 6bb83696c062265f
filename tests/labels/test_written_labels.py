"""Labels in text cells: what is split, what stays one name, and that halves of a table agree."""

import json
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from labelweave import LabelMatrix, MaxMarginClassifier, TableModel, Taxonomy, metrics
from labelweave.datasets import TableColumns
from labelweave.labels.label_names import names_of, words_on_alike
from labelweave.labels.tags import tags_of_texts
from labelweave.labels.written_labels import (
    PLACES,
    found_layout,
    in_halves,
    names_in,
    places_of,
    written_list,
)

TAGS = ("sql", "python", "git", "c", "pandas")


def layout(cells):
    return found_layout([cells[part] for part in in_halves(len(cells))])


def tag_sets(n_rows=60, seed=0, tags=TAGS, sizes=(1, 3)):
    source = random.Random(seed)
    return [source.sample(tags, source.randint(*sizes)) for _ in range(n_rows)]


def read(cells):
    separator = layout(cells).separator
    return [names_in(cell, separator) for cell in cells]


@pytest.mark.parametrize(
    "text",
    [
        "['a', 'b']",
        '["a", "b"]',
        "{'a', 'b'}",
        "('a', 'b')",
        "('a', 'b',)",
        "['a' 'b']",
        "['a'\n 'b']",
        "'a', 'b'",
        '"a", "b"',
        "frozenset({'a', 'b'})",
        "array(['a', 'b'], dtype='<U1')",
        "[np.str_('a'), np.str_('b')]",
        'c("a", "b")',
        "dict_keys(['a', 'b'])",
        "dict_items([('a', 1), ('b', 2), ('c', 0)])",
        "set(['a', 'b'])",
        "OrderedDict([('a', 1), ('b', 1)])",
        "Counter({'a': 2, 'b': 1})",
        "defaultdict(<class 'int'>, {'a': 2, 'b': 1})",
        "deque(['a', 'b'], maxlen=2)",
        "Index(['a', 'b'], dtype='object', name='tags')",
        "pd.Index(['a', 'b'])",
        "numpy.array(['a', 'b'],\n      dtype='<U1')",
        "<StringArray>\n['a', 'b']\nLength: 2, dtype: string",
        "<QuerySet ['a', 'b']>",
        "tf.Tensor([b'a' b'b'], shape=(2,), dtype=string)",
        "[u'a', u'b']",
        "[ObjectId('a'), ObjectId('b')]",
        r'"[\"a\", \"b\"]"',
        "\"['a', 'b']\"",
        '[{"id": 7, "name": "a"}, {"id": 8, "name": "b"}]',
        "[{'id': 7, 'name': 'a'}, {'id': 8, 'name': 'b'}]",
        '[{"label": "a"}, {"label": "b"}]',
        '[{"Title": "a", "score": 1}, {"Title": "b", "score": 2}]',
        '[{"id": "a"}, {"id": "b"}]',
        '{"/m/1": "a", "/m/2": "b"}',
        '{"a": 1, "b": 1, "c": 0}',
        '{"a": true, "b": true, "c": false}',
        "{'a': 'yes', 'b': 'yes', 'c': 'no'}",
        '{"a": null, "b": null}',
        '{"a": 512, "b": 3}',
        '{"labels": ["a", "b"]}',
        '{"Q1": {"label": "a"}, "Q2": {"label": "b"}}',
        'List.of("a", "b")',
        '[{"term": "a", "rank": 1}, {"term": "b", "rank": 2}]',
        '[{"name": "a", "value": 1}, {"name": "c", "value": 0}, {"name": "b", "value": 1}]',
        '[{"label": "a", "present": true}, {"label": "b", "present": true}]',
    ],
)
def test_a_list_is_read_in_any_brackets(text):
    assert written_list(text) == ["a", "b"]


@pytest.mark.parametrize("text", ["[]", "{}", "()", "set()", "frozenset()", "array([], dtype=object)"])
def test_empty_brackets_hold_no_label(text):
    assert written_list(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "(1)",
        "(1, 2)",
        "(New York)",
        "[deprecated]",
        "{a}",
        "list",
        "c",
        "'quoted'",
        "a (b), c",
        "set(a)",
        "f(x)",
        "['a'] x",
        "f((x), (y))",
        "C(#) <b>",
        '"a"',
    ],
)
def test_names_with_brackets_are_no_lists(text):
    assert written_list(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "[['a'], ['b']]",
        "['a' ... 'b']",
        "[{'x': 'a', 'y': 'b'}]",
        '{"a": {"b": 1}}',
        '{"a": 0.5, "b": 0.1}',
        "[{'name': 'a'}, 'b']",
        "['a', None]",
        "[{'name': 'a'",
        "{'a': ['b'], 'c': ['d']}",
        "[0.2, 0.8]",
        '["a"; "b"]',
        r"['\x']",
        r'["\ud800"]',
        "Index([a, b])",
        "dict_keys([<Tag: a>])",
        "dict_items([('a', 0.5)])",
        "<QuerySet [<Tag: a>]>",
        '[{"label": "a", "score": 0.9}, {"label": "b", "score": 0.1}]',
    ],
)
def test_what_is_not_clear_is_refused(text):
    if text == "[{'name': 'a'":
        assert written_list(text) is None
    else:
        with pytest.raises(ValueError, match=r"Y at row 1 is .*; pass .*names"):
            LabelMatrix.from_any(["['a']", text])


def test_objects_of_json_are_read_as_their_texts_are():
    assert names_of([{"name": "a"}, {"name": "b"}]) == names_of({"a": True, "b": 1, "c": 0}) == ["a", "b"]
    assert names_of({"name": "a", "id": 3}) == names_of({"id": "a"}) == ["a"]


CELLS = [
        lambda tags: f"[{', '.join(tags)}]",
        lambda tags: f"{{{','.join(tags)}}}",
        lambda tags: f"({', '.join(tags)})",
        lambda tags: f"[{' '.join(tags)}]",
        lambda tags: f"{{{';'.join(tags)}}}",
        lambda tags: "".join(f"<{tag}>" for tag in tags),
        lambda tags: "".join(f"[{tag}]" for tag in tags),
        lambda tags: ", ".join(f"'{tag}'" for tag in tags),
        lambda tags: ", ".join(f'"{tag}"' for tag in tags),
        lambda tags: f"{{{','.join(tag.replace('c', chr(34) + 'c' + chr(34)) for tag in tags)}}}",
        lambda tags: str(set(tags)),
        lambda tags: str(tuple(tags)),
        lambda tags: str(np.array(tags)),
        lambda tags: json.dumps([{"name": tag} for tag in tags]),
        lambda tags: f"[{', '.join(tags)}]" if len(tags) > 1 else tags[0],
        lambda tags: json.dumps([", ".join(tags)]),
        lambda tags: json.dumps(["; ".join(tags)]),
        lambda tags: str([",".join(tags[:2]), *tags[2:]]),
        lambda tags: json.dumps(json.dumps(tags)),
        lambda tags: json.dumps([json.dumps(tags)]),
        lambda tags: ", ".join(f"“{tag}”" for tag in tags),
        lambda tags: f"[{', '.join(f'‘{tag}’' for tag in tags)}]",
        lambda tags: " ".join(f"`{tag}`" for tag in tags),
        lambda tags: "|".join(f'"{tag}"' for tag in tags),
        lambda tags: " ".join(f"<{tag}>" for tag in tags),
        lambda tags: " ".join(f"[[{tag}]]" for tag in tags),
        lambda tags: f"{{{','.join(f'{{{tag}}}' for tag in tags)}}}",
        lambda tags: "".join(f"<tag>{tag}</tag>" for tag in tags),
        lambda tags: f"List({', '.join(tags)})",
        lambda tags: f"c({','.join(tags)})",
        lambda tags: repr(dict.fromkeys(tags).keys()),
        lambda tags: repr(pd.Index(tags, dtype=object)),
        lambda tags: repr(np.array(tags, object)),
        lambda tags: " ".join(f"{place}. {tag}" for place, tag in enumerate(tags, 1)),
        lambda tags: " ".join(f"{place}.{tag}" for place, tag in enumerate(tags, 1)),
        lambda tags: ", ".join(f"{place}: {tag}" for place, tag in enumerate(tags, 1)),
        lambda tags: "; ".join(f"{place}) {tag}" for place, tag in enumerate(tags, 1)),
        lambda tags: "\n".join(f"({place}) {tag}" for place, tag in enumerate(tags, 1)),
        lambda tags: "\n".join(f"- {tag}" for tag in tags),
        lambda tags: "\r\n".join(f"* {tag}" for tag in tags),
        lambda tags: " ".join(f"• {tag}" for tag in tags),
        lambda tags: " ".join(f"#{tag}" for tag in tags),
        lambda tags: ", ".join(f"#{tag}" for tag in tags),
        lambda tags: f"【{'，'.join(tags)}】",
        lambda tags: f"⟨{', '.join(tags)}⟩",
        lambda tags: "".join(f"「{tag}」" for tag in tags),
        lambda tags: f"array({', '.join(f'{k} => {tag!r}' for k, tag in enumerate(tags))})",
        lambda tags: f"{{{', '.join(f'{json.dumps(tag)}=>true' for tag in tags)}}}",
        lambda tags: "".join(f"#{tag}" for tag in tags),
        lambda tags: " ".join(f"@{tag}" for tag in tags),
]  # fmt: skip


@pytest.mark.parametrize("write", CELLS)
def test_cells_in_brackets_are_read_together(write):
    sets = tag_sets()
    assert [sorted(names) for names in read([*map(write, sets)])] == [sorted(tags) for tags in sets]


def test_names_in_quotes_may_hold_the_separator():
    cells = ['{"Smith, John",b}', "{b,c}", '{c,"Smith, John"}'] * 4
    assert read(cells)[:3] == [["Smith, John", "b"], ["b", "c"], ["c", "Smith, John"]]


@pytest.mark.parametrize(
    "write",
    [
        str,
        lambda bits: str([*map(float, bits)]),
        lambda bits: str([*map(bool, bits)]),
        lambda bits: json.dumps([*map(bool, bits)]),
        lambda bits: str(tuple(bits)),
        lambda bits: str(np.array(bits)),
        lambda bits: str(np.array(bits, float)),
        lambda bits: " ".join(map(str, bits)),
        lambda bits: ",".join(map(str, bits)),
        lambda bits: ";".join(map(str, bits)),
        lambda bits: str([2 * bit - 1 for bit in bits]),
        lambda bits: "{" + ",".join(map(str, bits)) + "}",
        lambda bits: str([*map(str, bits)]),
        lambda bits: f"tensor({[*map(float, bits)]}, dtype=torch.float64)",
        lambda bits: repr(np.array(bits, np.int8)),
        lambda bits: ",".join("FT"[bit] for bit in bits),
        lambda bits: json.dumps([["no", "Yes"][bit] for bit in bits]),
        lambda bits: tuple(map(str, bits)),
        lambda bits: f"[{', '.join(f'np.int64({bit})' for bit in bits)}]",
        lambda bits: f"[{', '.join(f'np.{bool(bit)}_' for bit in bits)}]",
        lambda bits: " ".join(f"{bit:.6e}" for bit in bits),
        lambda bits: ",".join(f"{2 * bit - 1:+d}" for bit in bits),
        lambda bits: "".join(map(str, bits)),
        lambda bits: "".join("ny"[bit] for bit in bits),
        lambda bits: f"tensor({bits}, device='cuda:0')",
    ],
)
def test_lists_of_0_and_1_are_columns(write):
    source = random.Random(0)
    rows = [[source.randint(0, 1) for _ in range(12)] for _ in range(20)]
    cells = [*map(write, rows)]
    assert isinstance(cells[0], tuple) or layout(cells).separator == PLACES
    assert [[int(bit > 0) for bit in places_of(cell)] for cell in cells] == rows


@pytest.mark.parametrize("cell", ["[0, None, 1]", "0,nan,1", "[0, null, 1]", [0, None, 1]])
def test_places_may_be_unknown(cell):
    np.testing.assert_array_equal(places_of(cell), [0, np.nan, 1])
    assert places_of("[nan, nan]") is None


@pytest.mark.parametrize("cells", [["010", "001"], ["0 1", "1 1"], ["[np.int64(0), np.int64(1)]"] * 2])
def test_places_in_texts_of_python_are_refused(cells):
    with pytest.raises(ValueError, match=r"texts of Y, such as '.*', hold 0 or 1 for each label; give a two"):
        LabelMatrix.from_any(pd.Series(cells))


@pytest.mark.parametrize(
    "cells",
    [["111", "101"], ["[0, 1]", "[1]"], ["[0]", "[1]"], ["[0, 2]", "[1, 2]"], ["0", "1"], ["1:0", "0:1"]],
)
def test_other_numbers_are_no_places(cells):
    assert layout(cells * 5).separator != PLACES


SEPARATORS = [";", "|", ",", ", ", "\t", "\n", "\r\n", " // ", "/", " / ", "+", " + ", ":", "::"]
SEPARATORS += [" & ", " | ", "||", " ", "、", "；", ",\n", ";\n", ";#", "|||", " • ", " - "]
SEPARATORS += [
    *"^~#@%·•*=‖｜\\",
    " and ",
    " und ",
    " · ",
    " – ",
    " — ",
    "^^",
    "<br>",
    "<br />",
    " -- ",
    " -> ",
    " » ",
]


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("order", [list, sorted])
def test_cells_are_cut_where_parts_come_again(separator, order):
    sets = [order(tags) for tags in tag_sets(200)]
    assert read([separator.join(tags) for tags in sets]) == sets


@pytest.mark.parametrize(
    "separator", ["&&", "---", "!", "__", "_", "-", ".", " . ", "¤", "\u2028", "\\n", ",;", "|,", ", and "]
)
@pytest.mark.parametrize("order", [list, sorted])
def test_other_signs_are_separators_where_parts_come_again(separator, order):
    sets = [order(tags) for tags in tag_sets(200)]
    assert read([separator.join(tags) for tags in sets]) == sets


@pytest.mark.parametrize("separator", [s for s in SEPARATORS if s != " "])
def test_a_few_distinct_sets_are_cut(separator):
    sets = [["a", "b"], ["b", "c"], ["a", "c"], ["b"]] * 10
    assert read([separator.join(tags) for tags in sets]) == sets


@pytest.mark.parametrize("separator", [";", "|", ",", "\t", "\n", " // ", "/", " & "])
def test_rare_tags_are_cut(separator):
    tags = [f"kw{k}" for k in range(80)]
    sets = tag_sets(80, tags=tags, sizes=(2, 4))
    assert read([separator.join(names) for names in sets]) == sets


def conjunction(word, comma=""):
    return lambda tags: f"{comma} {word} ".join([", ".join(tags[:-1]), tags[-1]][len(tags) == 1 :])


@pytest.mark.parametrize(
    ("write", "said"),
    [
        *((conjunction(word), f"' {word} '") for word in ("and", "&", "or", "und", "et", "y", "ou")),
        (conjunction("and", ","), "' and '"),
        (lambda tags: (", " if len(tags[0]) % 2 else "; ").join(tags), "';'"),
        (lambda tags: ",;|"[len(tags[0]) % 3].join(tags), "';' or '|'"),
    ],
)
@pytest.mark.parametrize("n_tags", [5, 30])
def test_separators_and_words_before_the_last_label_come_together(write, said, n_tags):
    tags = ["sql", "python", "git", "c", "r", *(f"{'kw' * (k % 3)}{k}" for k in range(n_tags))]
    sets = tag_sets(300, tags=tags, sizes=(1, 4))
    cells = [*map(write, sets)]
    assert read(cells) == sets
    assert f"are split at ',' or {said}" in layout(cells).words("cells")
    assert tags_of_texts(pd.Series(cells[:9]), tags) == sets[:9]
    assert [names_in(cell, layout(cells[:150] + cells[:9]).separator) for cell in cells[:9]] == sets[:9]


@pytest.mark.parametrize("between", ["; ", ", "])
def test_names_with_commas_or_words_stay_in_lists(between):
    names = (
        ["Smith, J.", "Lee, J.", "Smith, A.", "Poe, A."] if between == "; " else ["Arts and Crafts", "Home"]
    )
    names += ["Books", "Food and Drink", "Toys and Books"] if between == ", " else ["Rome, Italy", "Italy"]
    sets = tag_sets(100, tags=names, sizes=(1, 3))
    assert read([between.join(one) for one in sets]) == sets


def test_a_separator_may_be_a_regular_expression():
    assert names_in("a, b  und c", r"/\s*(,|und)\s*/") == ["a", "b", "c"]
    assert names_in("[a, b; c]", "[/,|;/]") == names_in('["a; b, c"]', '["/,|;/"]') == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"label_separator '/\(/' is no regular expression"):
        TableColumns(label_separator="/(/")


def test_what_is_not_clear_is_said_and_left():
    found = layout(["sql python", "python git", "git"] * 5)
    assert found.separator is None
    assert "may be lists with ' ' between labels, such as 'python git', and are not split" in found.words(
        "cells"
    )


@pytest.mark.parametrize(
    "write",
    [
        lambda tags: ", ".join(f"{tag}:0.{len(tag)}" for tag in tags),
        lambda tags: " ".join(f"{tag} (0.{len(tag)})" for tag in tags),
        lambda tags: "; ".join(f"{tag}={len(tag)}%" for tag in tags),
        lambda tags: f"{{{','.join(f'{tag}: .{len(tag)}' for tag in tags)}}}",
        lambda tags: str([f"{tag}:0.{len(tag)}" for tag in tags]),
    ],
)
def test_numbers_behind_names_are_said_and_left(write):
    found = layout([*map(write, tag_sets())])
    assert found.separator is None
    assert "cells have numbers behind names, such as" in found.words("cells")


@pytest.mark.parametrize("Y", [[["a, b"], ["b, c"], ["c", "a"], ["a, c"]], [["a; b"], ["b; c"], ["c; a"]]])
def test_tags_that_seem_to_be_several_are_pointed_out(Y):
    with pytest.warns(
        UserWarning, match=r"tags of Y may be lists with '[,;]' between labels, such as 'a[,;] "
    ):
        names = LabelMatrix.from_any(Y * 5).words
    assert names == sorted({tag for tags in Y for tag in tags})
    with pytest.raises(ValueError, match=r"Y at row 1 has a tag in .*a list of quoted"):
        LabelMatrix.from_any([["a"], ["['a'; 'b']"]])


ONE_NAME = {
    "towns": ["New York", "New Jersey", "Los Angeles", "San Diego", "San Francisco", "York", "Boston"],
    "persons": ["Smith, John", "Smith, Mary", "Brown, John", "Brown, Mary", "Lee, Bo", "Brown"],
    "places": ["Paris, France", "Lyon, France", "Rome, Italy", "Milan, Italy", "Oslo, Norway"],
    "either": ["and/or", "TCP/IP", "N/A", "he/she", "or", "and", "he/they"],
    "dates": ["2020-01-02", "2020-02-01", "2021-01-02"],
    "slashes": ["01/02/2020", "02/01/2020", "03/02/2020", "01/01/2020"],
    "times": ["12:30", "12:45", "13:30", "30:12"],
    "ratios": ["16:9", "4:3", "9:16", "3:4"],
    "languages": ["C", "C++", "C#", "Java", "F#", "C++ Builder"],
    "grades": ["A", "A+", "B", "B+", "A-"],
    "addresses": ["https://a.b/c", "https://a.b/d", "http://x.y/c", "https://x.y/d"],
    "tones": ["good", "very good", "bad", "very bad", "not bad"],
    "colors": ["red", "dark red", "light red", "blue", "dark blue", "light blue"],
    "shops": ["Toys, Games & Hobbies", "Clothing, Shoes & Jewelry", "Books", "Food & Drink"],
    "paths": ["animal/pet/bird", "animal/live", "food/dairy", "food/meat", "animal/pet/dog"],
    "sections": ["Books|Crime", "Books|Poems", "Music|Rock", "Music|Jazz"],
    "facets": ["role::program", "role::data", "use::editing", "use::viewing"],
    "chapters": ["Diseases of blood; immune disorders", "Mental disorders", "Injuries; poisoning"],
    "topics": ["deep learning", "machine learning", "learning theory", "operations research", "graph theory"],
    "questions": ["how do I pay", "how do I log in", "what is the balance", "where is my card", "how to pay"],
    "industries": ["Water; sewerage, waste", "Arts, sports and recreation", "Education", "Homes; own use"],
    "states": ["widowed, divorced or separated", "single", "married", "married and separated"],
    "terms": ["GO:2", "GO:31", "GO:77", "HP:2"],
    "brackets": ["[deprecated]", "stable", "testing", "(draft)"],
    "numbers": ["1,5", "2,5", "3,0", "4,5"],
    "domains": ["a.com", "b.com", "mail.b.com", "a.org"],
    "music": ["R&B", "Rock", "Drum & Bass", "Hip-Hop/Rap"],
    "companies": ["AT&T", "M&M", "Verizon", "H&M"],
    "shares": ["50%", "10%", "20%", "100% cotton", "2.5%"],
    "powers": ["R^2", "x^2", "y^2", "R^3"],
    "mail": ["a@b.org", "c@b.org", "d@e.com", "f@e.com"],
    "pairs": ["rock and roll", "rock", "pop", "drum and bass"],
    "spices": ["salt and pepper", "bread and butter", "milk"],
    "sections of a shop": ["Food and Drink", "Food and Wine", "Arts and Crafts", "Health and Beauty"],
    "numbered": ["1. Intro", "2. Methods", "3. Results", "4. End"],
    "answers": ["1) yes", "2) no", "3) not known"],
    "ranks": ["#1", "#2", "#3"],
    "hashtags": ["#travel", "#food"],
    "bullets": ["- a", "- b"],
    "catalan": ["col·lecció", "paral·lel", "cel·la"],
    "settings": ["x=1", "x=2", "y=1"],
    "about": ["~5 kg", "~10 kg"],
    "versions": ["HTTP/1.1", "HTTP/2", "v1.2"],
    "plain": ["red", "blue", "green"],
    "releases": ["1.2.3", "1.3.0", "2.0.1", "1.2.0"],
    "results": ["1-0", "0-1", "2-2", "2-0"],
    "locales": ["en_US", "en_GB", "de_DE", "de_AT", "pt_BR", "pt_PT"],
    "groups": ["comp.os.misc", "rec.misc", "rec.autos", "sci.med", "talk.politics.misc", "comp.graphics"],
    "intents": ["change_pin", "card_arrival", "card_not_working", "pending_card_payment", "top_up_failed"],
    "jobs": ["Exec-managerial", "Prof-specialty", "Adm-clerical", "Tech-support", "Craft-repair"],
}  # fmt: skip


@pytest.mark.parametrize("kind", ONE_NAME)
@pytest.mark.parametrize("seed", range(3))
def test_one_class_a_row_stays_one_class(kind, seed):
    cells = random.Random(seed).choices(ONE_NAME[kind], k=60)
    assert layout(cells).separator is None
    assert layout(cells[:1]).separator is None


def tables():
    """Return many kinds of label columns, and what splits them."""
    for number, separator in enumerate([*SEPARATORS, "><", ", "]):
        sets = tag_sets(200, number)
        yield [f"<{'><'.join(one)}>" if separator == "><" else separator.join(one) for one in sets]
        tags = [f"tag {k}" if separator.strip() else f"t{k}" for k in range(30)]
        yield [separator.join(one) for one in tag_sets(400, number, tags, (1, 4))]
    for write in CELLS:
        yield [*map(write, tag_sets(200, 7))]
    for number in range(12):
        tags = [f"w{k}" for k in range(20 + 30 * number)]
        yield [";,|/"[number % 4].join(one) for one in tag_sets(60 + 40 * number, number, tags, (2, 4))]
        yield [f"[{', '.join(one)}]" for one in tag_sets(30, number)]
        yield [f"{{{','.join(one)}}}" for one in tag_sets(30, number)]
        yield [str([random.Random(number * k).randint(0, 1) for _ in range(4)]) for k in range(30)]
        common = [["a", "b"], ["b", "c"], ["a", "c"], ["b"], ["c", "a", "b"]]
        yield [" +:;"[number % 4].join(one) for one in random.Random(number).choices(common, k=60)]
    for number, kind in enumerate(ONE_NAME):
        yield random.Random(number).choices(ONE_NAME[kind], k=100)


def test_halves_of_tables_are_read_alike():
    strange, cut = [], 0
    for cells in tables():
        half = len(cells) // 2
        found = {layout(part).separator for part in (cells[:half], cells[half:])}
        cut += found != {None}
        strange += [cells[:4]] * (len(found) > 1)
    assert cut > 60
    assert not strange


def test_what_halves_do_not_both_show_is_not_taken():
    tags, names = [",".join(one) for one in tag_sets(50)], ["Smith, John", "Smith, Mary", "Brown, John"] * 17
    assert layout(tags).separator == ","
    found = layout(tags + names)
    assert (found.separator, found.doubt) == (None, ",")


@pytest.mark.parametrize(
    ("paths", "nodes"),
    [
        (["A > B > C", "A > D", "E > F"], {"A", "A > B", "E"}),
        (["A>B>C", "A>D", "A"], {"A", "A>B"}),
        (["A / B", "A / C"], {"A"}),
        (["A/B", "A/C"], {"A"}),
        (["A::B", "A::C::D"], {"A", "A::C"}),
        (["A|B", "A|C|D"], {"A", "A|C"}),
        (["A -> B", "A -> C"], {"A"}),
        (["A » B", "A » C"], {"A"}),
        (["A\\B", "A\\C"], {"A"}),
        (["A.B.1.5 mm", "A.C.2.5 mm", "A.B"], {"A", "A.B", "A.C"}),
        (["1.1.2", "1.1", "1.2"], {"1", "1.1"}),
        (["A01.1", "A01.2", "B02.1"], {"A01", "B02"}),
        (["Sports/Out > Camp", "Sports/Out > Hike"], {"Sports/Out"}),
        (["St. Louis", "St. Paul"], set()),
        (["a=>b", "a=>c", "a"], {"a"}),
        (["a//b", "a//c", "a"], {"a"}),
        (["a : b", "a : c", "a"], {"a"}),
        (["a - b - 1-2", "a - c"], {"a", "a - b"}),
        (["a › b", "a › c", "a"], {"a"}),
        (["a", "b"], set()),
        (["C++", "C"], set()),
    ],
)
def test_what_divides_paths_is_found(paths, nodes):
    tree = Taxonomy.from_paths(paths)
    assert set(tree.parents.values()) == {(node,) for node in nodes}
    assert set(paths) <= set(tree.nodes)


def test_a_path_divider_may_be_given():
    assert Taxonomy.from_paths(["a.1.5"], ".").nodes == ["a", "a.1", "a.1.5"]
    with pytest.raises(ValueError, match="empty part"):
        Taxonomy.from_paths(["/a/b"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["Red", "red", "blue"], "'Red' and 'red'"),
        (["documentaries", "Documentarys"], "'documentaries' and 'Documentarys'"),
        (["New York", "new-york", "NewYork"], "'New York' and 'new-york' and 'NewYork'"),
        (["Comédie", "comedie"], "'Comédie' and 'comedie'"),
        (["thriller", "thrillers"], "'thriller' and 'thrillers'"),
        (["U.S.A.", "USA", "U.S.B."], "'U.S.A.' and 'USA'"),
        (["Rock & Roll", "Rock and Roll"], "'Rock & Roll' and 'Rock and Roll'"),
        (["York", "Yo\u200brk"], "'York' and 'Yo\\u200brk'"),
        (["C", "C++", "C#"], None),
        (["news", "new", "1-2", "12", "1 2", "policy", "police", "class", "clas"], None),
    ],
)
def test_names_that_are_written_alike_are_pointed_out(names, said):
    words = words_on_alike(names)
    assert (
        words is None if said is None else f"differ only in spelling: {said}; if they are one label" in words
    )


GENRES = ["Action, Drama", "Drama", "Comedy, Drama", "Action", "Action, Comedy", "Comedy"] * 5
FORMS = {
    "list": list,
    "Series": pd.Series,
    "string Series": lambda cells: pd.Series(cells, dtype="string"),
    "frame": lambda cells: pd.DataFrame({"genres": cells}),
    "polars": lambda cells: pl.Series("genres", cells),
    "arrow": pa.array,
}


@pytest.mark.parametrize("form", FORMS)
def test_texts_of_lists_are_tags(form):
    y, X = FORMS[form](GENRES), np.random.default_rng(0).normal(size=(30, 3))
    with pytest.warns(
        UserWarning, match="texts of Y list labels, such as 'Action, Comedy', and are split at ','"
    ):
        labels = LabelMatrix.from_any(y)
    assert labels.words == ["Action", "Comedy", "Drama"]
    with pytest.warns(UserWarning, match="y.to_numpy"):
        model = MaxMarginClassifier().fit(X, y)
    assert list(model.classes_) == ["Action", "Comedy", "Drama"]
    assert 0 <= model.score(X, y) <= 1
    assert model.score(X[1:2], y[1:2]) in (0, 1)
    assert LabelMatrix.from_any(model.predict(X), labels.words).shape == labels.shape


def test_texts_may_be_missing_and_blank():
    y = pd.Series([*GENRES, None, "", "  ", "?"])
    with pytest.warns(UserWarning, match="split at ','"):
        dense = LabelMatrix.from_any(y).to_dense()
    np.testing.assert_array_equal(dense[30:], [[np.nan] * 3, [0] * 3, [0] * 3, [np.nan] * 3])
    np.testing.assert_array_equal(
        LabelMatrix.from_any(["['a']", "", "b"]).to_dense(), [[1, 0], [0, 0], [0, 1]]
    )


def test_texts_of_an_array_or_of_a_categorical_column_are_classes():
    X = np.random.default_rng(0).normal(size=(30, 3))
    for y in (np.array(GENRES), np.array(GENRES, object), pd.Series(GENRES, dtype="category")):
        assert len(MaxMarginClassifier().fit(X, y).classes_) == 6
    assert len(MaxMarginClassifier().fit(X, pl.Series(GENRES, dtype=pl.Categorical).to_numpy()).classes_) == 6
    y = pd.Series(random.Random(0).choices(ONE_NAME["towns"], k=30))
    assert len(MaxMarginClassifier().fit(X, y).classes_) == 7


@pytest.mark.parametrize("y", [["['a', 'b']", "['b']", "[]"] * 4, ["{'a', 'b'}", "{'b'}", "set()"] * 4])
def test_lists_that_were_written_as_text_are_tags(y):
    frame = pd.DataFrame({"size": np.arange(12.0)})
    labels = LabelMatrix.from_any(pd.Series(y))
    assert labels.words == ["a", "b"]
    np.testing.assert_array_equal(labels.to_dense()[:3], [[1, 1], [0, 1], [0, 0]])
    model = TableModel(MaxMarginClassifier(), numeric="size").fit(frame, pd.Series(y))
    assert list(model.classes_) == ["a", "b"]


def test_lists_of_numbers_of_different_lengths_are_tags():
    assert LabelMatrix.from_any([[1, 3], [2]]).words == ["1", "2", "3"]
    assert LabelMatrix.from_any([(1, 3), None, []]).words == ["1", "3"]
    for table in ([[1], [0, 1]], [[1, 2], [3, 4]]):
        with pytest.raises(ValueError, match="Y "):
            LabelMatrix.from_any(table)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([[{"name": "a"}, {"name": "b"}], [{"name": "b"}], None]),
        [[{"id": 7, "label": "a"}, {"id": 8, "label": "b"}], [{"id": 8, "label": "b"}], None],
        pd.Series([{"a": True, "b": 1}, {"a": 0, "b": 1}, None]),
    ],
)
def test_objects_name_tags(y):
    np.testing.assert_array_equal(LabelMatrix.from_any(y).to_dense(), [[1, 1], [0, 1], [np.nan] * 2])
    with pytest.raises(ValueError, match=r"Y at row 1 is .*; pass a list of names"):
        LabelMatrix.from_any([[{"name": "a"}], [{"x": []}]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_words_for_true_and_false_are_labels(frame):
    y = frame({"a": ["Yes", "No", None], "b": ["y", "N", "t"], "c": ["TRUE", "f", "False"]})
    expected = [[1, 1, 1], [0, 0, 0], [np.nan, 1, 0]]
    np.testing.assert_array_equal(LabelMatrix.from_any(y).to_dense(), expected)
    with pytest.raises(ValueError, match="not numbers"):
        LabelMatrix.from_any(frame({"a": ["Yes", "maybe"]}))


def test_alike_tags_are_pointed_out_before_a_fit():
    with pytest.warns(UserWarning, match="In Y some labels differ only in spelling: 'Red' and 'red'"):
        MaxMarginClassifier().fit(np.eye(4), [["Red"], ["red"], ["blue"], ["green"]])


def test_metrics_read_texts_as_fits_do():
    with pytest.warns(UserWarning, match="split at ','"):
        assert metrics.f1_score(GENRES, [genre.split(", ") for genre in GENRES]) == 1.0
