import socket
import struct
from collections.abc import Iterator

import pytest
import torch

from gyrostat_reference.pool.wire import LARGEST, Line, LineClosed, WireError, pack, unpack


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Line]]:
    """A raw end and a line."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, Line(theirs, patience=5.0)


def framed(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


def test_half_a_message_does_not_block(ends: tuple[socket.socket, Line]) -> None:
    """A worker that is stopped in the middle of writing does not stop its reader."""
    raw, line = ends
    data = framed(b'{"a": 1}') + framed(b'{"b": 2}')
    raw.sendall(data[:15])
    assert line.read() == [{"a": 1}]
    raw.sendall(data[15:])
    assert line.read() == [{"b": 2}]


def test_what_was_said_before_the_end_is_heard(ends: tuple[socket.socket, Line]) -> None:
    """The last message of a worker that is gone counts, then the end is told."""
    raw, line = ends
    Line(raw).send({"a": [1.5, None]})
    raw.close()
    assert line.read() == [{"a": [1.5, None]}]
    with pytest.raises(LineClosed):
        line.read()
    with pytest.raises(LineClosed):
        line.send({})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack("<I", LARGEST + 1), id="too long"),
        pytest.param(framed(b"{"), id="no JSON"),
        pytest.param(framed(b"\xff"), id="no text"),
        pytest.param(framed(b"[1]"), id="no object"),
        pytest.param(framed(b"[" * 100_000), id="nested"),
    ],
)
def test_nonsense_is_refused(ends: tuple[socket.socket, Line], data: bytes) -> None:
    """What is no message of ours raises, and reserves no memory."""
    raw, line = ends
    raw.sendall(data)
    with pytest.raises(WireError):
        while True:
            line.read()


def test_a_reader_that_takes_nothing_is_given_up() -> None:
    """Sending to a process that is stopped ends within the line's patience."""
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(LineClosed):
        line = Line(ours, patience=0.05)
        while True:
            line.send({"filling": "x" * 10_000})


def test_tensors_survive_bit_for_bit() -> None:
    """Also values that JSON has no words for."""
    values = torch.tensor([[0.1, -0.0], [torch.nan, torch.inf]])
    found = unpack(pack(values), torch.float32, 2, 2)
    assert torch.equal(found.view(torch.int32), values.view(torch.int32))


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAA=", "?", pack(torch.zeros(3))])
def test_tensors_of_another_size_are_refused(text: str) -> None:
    """Bytes that are not a tensor of the type and shape asked for raise."""
    with pytest.raises(ValueError):
        unpack(text, torch.float32, 2)
