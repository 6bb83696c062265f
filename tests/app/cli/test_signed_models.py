"""``--key`` signs written models and refuses unsigned ones."""

import pytest

from labelweave.datasets import write_xmc

COMMANDS = [
    ["predict", "m.lw", "d.txt"],
    ["evaluate", "m.lw", "d.txt"],
    ["inspect", "m.lw"],
    ["report", "m.lw", "d.txt", "--out", "r.html"],
    ["decide", "m.lw", "d.txt", "--tune-threshold", "micro_f1", "--out", "n.lw"],
]


@pytest.fixture
def keys(run, rows, tmp_path):
    write_xmc(rows, tmp_path / "d.txt")
    for name, byte in (("own.key", b"a"), ("other.key", b"b")):
        (tmp_path / name).write_bytes(byte * 32)
    run("fit d.txt --model binary-relevance --out m.lw -q --key own.key")
    return tmp_path


@pytest.mark.parametrize("words", COMMANDS, ids=[words[0] for words in COMMANDS])
def test_every_command_takes_a_key(run, keys, words):
    done = run(*words, "--key", "other.key", code=2)
    assert done.err.endswith(
        "its signature does not match the key; it was signed with another key, or changed since.\n"
    )
    assert not {"r.html", "n.lw"} & {path.name for path in keys.iterdir()}
    if words[0] in ("predict", "decide"):
        run(*words, "--key", "own.key")
        run(*words)


def test_decide_signs_what_it_writes(run, keys):
    run("decide m.lw d.txt --tune-threshold micro_f1 --out n.lw --key own.key")
    run("predict n.lw d.txt --key own.key")
