"""Which files are replaced, which are written through, and what a killed process leaves."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

from labelweave.model_files import ModelContent, read_model_file, safe_file, write_model_file
from labelweave.model_files.safe_file import replacing_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

is_root = os.name == "posix" and os.geteuid() == 0


@pytest.fixture(params=["unnamed", "named"])
def kind_of_file(request, monkeypatch):
    """Write with unnamed files, if supported, and as on systems without them."""
    if request.param == "named":
        monkeypatch.setattr(safe_file, "_unnamed", lambda *_: None)
    return request.param


def fill(path, data=b"new"):
    with replacing_file(path) as file:
        file.write(data)


@pytest.mark.parametrize("through_link", [False, True])
def test_a_pipe_is_written_into(tmp_path, through_link):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = pipe
    if through_link:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    thread = threading.Thread(target=write_model_file, args=(path, ModelContent("Demo", {"a": 1})))
    thread.start()
    (tmp_path / "m").write_bytes(pipe.read_bytes())
    thread.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert read_model_file(tmp_path / "m").state == {"a": 1}


def test_a_socket_is_written_into(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # addresses are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        thread = threading.Thread(target=fill, args=("s", b"n" * 100_000))
        thread.start()
        with server.accept()[0] as connection, connection.makefile("rb") as stream:
            assert stream.read() == b"n" * 100_000
        thread.join()
    assert stat.S_ISSOCK(os.stat("s").st_mode)


@pytest.mark.skipif(not is_root, reason="only root makes devices")
def test_a_device_is_written_into(tmp_path):
    try:
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no devices can be made here")
    write_model_file(tmp_path / "null", ModelContent("Demo", {}))
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)
    assert os.listdir(tmp_path) == ["null"]


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs /dev/stdout")
def test_standard_output_by_its_name():
    words = "from labelweave.model_files.safe_file import replacing_file\n"
    words += "with replacing_file('/dev/stdout') as file: file.write(b'new')"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, check=True)
    assert done.stdout == b"new"


def test_what_is_refused_is_not_written_into_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TypeError):
        write_model_file(tmp_path / "pipe", ModelContent("Demo", {"a": object()}))


@pytest.mark.usefixtures("kind_of_file")
def test_mode_and_owner_are_kept(tmp_path):
    old = tmp_path / "old"
    old.touch()
    old.chmod(0o640)
    if is_root:
        os.chown(old, 1234, 2345)
    before = old.stat()
    fill(old)
    after = old.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert old.read_bytes() == b"new"


def test_an_owner_that_cannot_be_kept_is_no_reason_to_fail(tmp_path, monkeypatch):
    (tmp_path / "old").touch()
    asked = []

    def refused(descriptor, owner, group):
        asked.append((owner, group))
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refused)
    fill(tmp_path / "old")
    assert asked == [(os.geteuid(), os.getegid()), (-1, os.getegid())]


@pytest.mark.usefixtures("kind_of_file")
def test_a_file_of_its_owner_alone_is_never_open_to_others(tmp_path):
    (tmp_path / "old").touch(0o600)
    with replacing_file(tmp_path / "old") as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


_SAVE = """
import os, sys, time
from labelweave.model_files import safe_file
if sys.argv[1] == "named":
    safe_file._unnamed = lambda *_: None
with safe_file.replacing_file("model") as file:
    file.write(bytes(10_000_000))
    file.flush()
    print("saving", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def saving(tmp_path, kind_of_file):
    (tmp_path / "model").write_bytes(b"old")
    words = [sys.executable, "-c", _SAVE, kind_of_file]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"saving\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_process_leaves_nothing_that_outlives_the_next_save(tmp_path, saving, kind_of_file, number):
    fill(tmp_path / "other")
    during = 2 if kind_of_file == "unnamed" else 3
    assert len(os.listdir(tmp_path)) == during  # a file being written is not touched
    saving.send_signal(number)
    saving.wait()
    assert len(os.listdir(tmp_path)) == during
    fill(tmp_path / "other")
    assert sorted(os.listdir(tmp_path)) == ["model", "other"]
    assert (tmp_path / "model").read_bytes() == b"old"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("step", ["fsync", "link", "replace"])
@pytest.mark.usefixtures("kind_of_file")
def test_an_interrupted_write_leaves_the_old_file_alone(tmp_path, monkeypatch, step, error):
    def fail(*_, **__):
        raise error

    (tmp_path / "m").write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(error):
        fill(tmp_path / "m")
    assert os.listdir(tmp_path) == ["m"]
    assert (tmp_path / "m").read_bytes() == b"old"


def test_what_only_looks_like_a_file_left_over_stays(tmp_path):
    (tmp_path / "target").touch()
    (tmp_path / ".labelweave-1.saving").symlink_to(tmp_path / "target")
    (tmp_path / ".labelweave-2.saving").mkdir()
    (tmp_path / ".labelweave-3.saving").touch()
    fill(tmp_path / "m")
    left = {".labelweave-1.saving", ".labelweave-2.saving", "m", "target"}
    assert set(os.listdir(tmp_path)) == left


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL])
def test_where_no_file_can_be_unnamed_it_has_a_name_until_it_is_there(tmp_path, monkeypatch, error):
    opened = os.open

    def no_unnamed(path, flags, *mode, **options):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(error, "no such files here")
        return opened(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", no_unnamed)
    with replacing_file(tmp_path / "m.lw") as file:
        file.write(b"new")
        assert [path.name.endswith(".saving") for path in tmp_path.iterdir()] == [True]
    assert [path.name for path in tmp_path.iterdir()] == ["m.lw"]
    assert (tmp_path / "m.lw").read_bytes() == b"new"


def test_other_errors_of_the_system_are_passed_on(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="No space left"), replacing_file(tmp_path / "m.lw"):
        pass


def test_systems_without_owners_locks_and_unnamed_files(tmp_path, monkeypatch):
    (tmp_path / "m.lw").write_bytes(b"old")
    os.chmod(tmp_path / "m.lw", 0o640)
    left_over = tmp_path / ".labelweave-0.saving"
    left_over.touch()
    monkeypatch.delattr(os, "O_TMPFILE")
    monkeypatch.delattr(os, "fchown")
    monkeypatch.setattr(safe_file, "fcntl", None)
    fill(tmp_path / "m.lw")
    assert (tmp_path / "m.lw").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "m.lw").stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == [left_over.name, "m.lw"]
