"""Files are written whole or not at all."""

import os

import pytest

from tiled_matmul.files import replace_text


def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(OSError, match="is not a regular file"):
            replace_text(path, "marks")
    assert not pipe.is_file() and list(tmp_path.iterdir()) == [pipe]


def test_a_file_keeps_its_mode_and_gets_the_text(tmp_path):
    path = tmp_path / "marks"
    replace_text(path, "one")
    path.chmod(0o600)
    replace_text(path, "two")
    assert path.read_text() == "two" and path.stat().st_mode & 0o777 == 0o600
