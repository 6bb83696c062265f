import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.labels import Taxonomy

networkx = pytest.importorskip("networkx")


@pytest.mark.parametrize(
    "source",
    [
        {"a": {"b": {"c": None, "d": {}}, "e": []}, "f": None},
        {"a": [{"b": ("c", "d")}, "e"], "f": set()},
        {"a": {"b": {"d", "c"}, "e": ()}, "f": {}},
    ],
)
def test_nested_dicts_lists_and_sets(source):
    tree = Taxonomy.from_nested(source)
    assert tree.nodes == ["a", "b", "c", "d", "e", "f"]
    assert tree.roots == ["a", "f"]
    assert Taxonomy.from_any(source) == tree


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"animal": ["dog"], "plant": {"x": ["dog"]}},
            "'dog' occurs twice, at 'animal > dog' and at 'plant > x > do",
        ),
        ({"a": {"b": {"a": None}}}, "'a' occurs twice, at 'a' and at 'a > b > a'"),
        ({1: None, "1": None}, "'1' occurs twice"),
        ({"a": {"": None}}, r"The name at 'a' of the nested taxonomy"),
        ({"": None}, "name at the top"),
        ({"a": "b"}, "Below 'a' is 'b'; pass a dict, a list"),
        ({"a": {"b": 3}}, "Below 'a > b' is 3"),
        ({"a": ["b", ["c"]]}, r"below 'a' contains \['c'\]"),
    ],
)
def test_nested_sources_that_are_no_tree(source, message):
    with pytest.raises(ValueError, match=message):
        Taxonomy.from_nested(source)


def test_a_dict_inside_itself_ends():
    source: dict = {"a": {}}
    source["a"]["b"] = source
    with pytest.raises(ValueError, match="'a' occurs twice"):
        Taxonomy.from_nested(source)


def test_paths_name_nodes_and_add_ancestors():
    tree = Taxonomy.from_paths(["a/b/c", "a/b", "d"])
    assert tree.nodes == ["a", "a/b", "a/b/c", "d"]
    assert tree.parent == {"a/b": "a", "a/b/c": "a/b"}
    assert Taxonomy.from_any(["a/b/c", "a/b", "d"]) == tree
    assert Taxonomy.from_paths(["a.b", "a"], ".", ancestors="require").nodes == ["a", "a.b"]
    assert Taxonomy.from_paths(["a::b"], "::").leaves == ["a::b"]


@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        (["a/b", "a", "a/b"], {}, "'a/b' occurs twice, again at position 2"),
        (["a//b"], {}, "'a//b' has an empty part"),
        (["/a"], {}, "'/a' has an empty part"),
        (["a/"], {}, "'a/' has an empty part"),
        (["a", " "], {}, r"The name at path 1"),
        (
            ["a", "a/b/c", "x/y"],
            {"ancestors": "require"},
            r"'a/b/c' is listed without its parent 'a/b' \(2 of 3",
        ),
        (["a"], {"ancestors": "maybe"}, "ancestors='maybe'"),
        (["a"], {"separator": ""}, "separator=''"),
        ("a/b", {}, "paths is the text 'a/b'"),
        ([], {}, "taxonomy is empty"),
    ],
)
def test_paths_that_are_refused(paths, options, message):
    with pytest.raises(ValueError, match=message):
        Taxonomy.from_paths(paths, **options)


def test_graphs_there_and_back():
    graph = networkx.DiGraph([("a", "b"), ("a", 3)])
    graph.add_node("lone")
    tree = Taxonomy.from_networkx(graph)
    assert tree.nodes == ["a", "b", "3", "lone"]
    assert Taxonomy.from_any(graph) == Taxonomy.from_networkx(tree.to_networkx()) == tree
    assert list(tree.to_networkx().edges) == [("a", "b"), ("a", "3")]
    assert Taxonomy.from_networkx(networkx.MultiDiGraph([(1, 2), (1, 2)])).leaves == ["2"]


@pytest.mark.parametrize(
    ("graph", "root", "message"),
    [
        (networkx.Graph([(1, 2)]), None, "undirected; pass a DiGraph"),
        (networkx.DiGraph([(1, "1")]), None, "1 and '1', are both '1'"),
        (networkx.DiGraph([(1, 2), (2, 3), (3, 1)]), None, "cycle"),
        (networkx.DiGraph([(1, 3), (2, 4)]), 1, "below the root '1': '2' has no parent"),
        (networkx.DiGraph(), None, "taxonomy is empty"),
    ],
)
def test_graphs_that_are_no_taxonomy(graph, root, message):
    with pytest.raises(ValueError, match=message):
        Taxonomy.from_networkx(graph, root)


def test_any_source():
    tree = Taxonomy([("a", "b")])
    assert Taxonomy.from_any(tree) is tree
    assert Taxonomy.from_any([["a", "b"]]) == tree
    assert Taxonomy.from_any(pair for pair in [("a", "b")]) == tree
    for wrong in ("a/b", 3, None):
        with pytest.raises(TypeError, match="taxonomy is of type"):
            Taxonomy.from_any(wrong)
    with pytest.raises(ValueError, match="taxonomy is empty"):
        Taxonomy.from_any([])


def test_a_frame_gives_its_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"parent": ["a", "a"], "child": ["b", "c"]})
    assert Taxonomy.from_any(frame).leaves == ["b", "c"]
    with pytest.raises(ValueError, match="is empty"):
        Taxonomy.from_any(pandas.DataFrame({"parent": ["a", None], "child": ["b", "a"]}))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_have_parents_and_children_by_name_or_else_by_place(library):
    frames = pytest.importorskip(library)
    make = frames.table if library == "pyarrow" else frames.DataFrame
    tree = Taxonomy([("a", "b"), ("a", "c"), ("c", "d")])
    parents, children = ["a", "a", "c"], ["b", "c", "d"]
    assert Taxonomy.from_any(make({"child": children, "parent": parents})) == tree
    assert Taxonomy.from_any(make({"nodes": [1, 2, 3], "parent": parents, "child": children})) == tree
    assert Taxonomy.from_any(make({"nodes": parents, "edges": children})) == tree
    with pytest.raises(ValueError, match=r"edge at position 0 is .*a pair \(parent, child\)"):
        Taxonomy.from_any(make({"top": parents, "middle": parents, "bottom": children}))
    with pytest.raises(ValueError, match="is empty"):
        Taxonomy.from_any(make({"parent": ["a", None], "child": ["b", "a"]}))


@settings(max_examples=50)
@given(
    st.recursive(
        st.none(), lambda below: st.dictionaries(st.integers(0, 99), below, max_size=4), max_leaves=12
    )
)
def test_every_source_gives_the_same_tree(shape):
    nested = _named(shape or {0: None}, ())
    tree = Taxonomy.from_nested(nested)
    paths = ["/".join(name.split("/")) for name in tree.nodes]
    for other in (
        Taxonomy.from_paths(paths, ancestors="require"),
        Taxonomy.from_paths(tree.leaves),
        Taxonomy.from_networkx(tree.to_networkx()),
        Taxonomy(tree.pairs(), tree.roots),
    ):
        assert other == tree
        assert other.nodes == tree.nodes


def _named(shape, above):
    return {
        "/".join([*above, str(name)]): None if below is None else _named(below, (*above, str(name)))
        for name, below in shape.items()
    }


def test_whole_numbers_of_frames_are_one_name_however_they_are_kept():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"parent": [None, 1, 2], "child": [1, 2, 3]})
    assert Taxonomy.from_any(frame.dropna()).nodes == ["1", "2", "3"]
