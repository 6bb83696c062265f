"""Standard input goes to a temporary file, within a limit, that is gone with the command."""

import gc
import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from labelweave.app.cli import flags
from labelweave.app.cli.flags import _copied, _suffix, data_path


def test_blocks_are_put_together(tmp_path, monkeypatch):
    monkeypatch.setattr(flags, "_BLOCK_BYTES", 7)
    content = b"a,b\n" + b"1,2\n" * 20
    path = _copied(io.BytesIO(content), tmp_path)
    assert path.name == "standard-input.csv"
    assert path.read_bytes() == content


def test_more_than_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(flags, "_BLOCK_BYTES", 7)
    monkeypatch.setattr(flags, "_MOST_BYTES", 20)
    with pytest.raises(click.UsageError, match="Standard input is longer than"):
        _copied(io.BytesIO(b"a,b\n" + b"1,2\n" * 20), tmp_path)
    with pytest.raises(click.UsageError, match="is empty"):
        _copied(io.BytesIO(b""), tmp_path)


def test_the_folder_is_gone_with_the_command(monkeypatch):
    monkeypatch.setattr(flags, "sys", SimpleNamespace(stdin=SimpleNamespace(buffer=io.BytesIO(b"a,b\n"))))
    context = click.Context(click.Command("predict"))
    flag = click.Option(["--data"])
    assert data_path(context, flag, "a.csv") == "a.csv"
    path = data_path(context, flag, "-")
    assert Path(path).read_text() == "a,b\n"
    context.close()
    gc.collect()
    assert not Path(path).exists()


def test_compressed_text_is_looked_into():
    assert _suffix(gzip.compress(b"@relation r\n")) == ".arff.gz"
    assert _suffix(gzip.compress(b'{"a": 1}\n')) == ".jsonl.gz"
