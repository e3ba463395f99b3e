"""Frames: what is written is what is read, and damage costs only the frames it touches."""

import struct
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gyrostat.wire import frames
from gyrostat.wire.frames import HEADER, Frame, Kind, Role, encode, scan

BODIES = st.lists(st.binary(max_size=80) | st.just(b"xGYROy" + bytes(60)), min_size=1, max_size=8)


def made(sequence: int, body: bytes = b"body") -> Frame:
    return Frame(Kind.RECORD, 0, 3, 1, 2, sequence, 40 + sequence, 1_700_000_000_000_000_000, body)


def stream(bodies: list[bytes]) -> list[bytes]:
    return [encode(made(i + 1, body)) for i, body in enumerate(bodies)]


@pytest.mark.parametrize(
    "frame",
    [
        made(1),
        made(1, b""),
        made(1)._replace(sequence=2**64 - 1),
        made(1)._replace(step=-1, role=255, rank=2**32 - 1, segment=2**32 - 1, time=-1),
        made(1)._replace(kind=200),
    ],
    ids=["plain", "empty body", "last sequence number", "field limits", "kind of a later version"],
)
def test_a_frame_reads_back_as_it_was_written(frame: Frame) -> None:
    """A reader gets every field of a frame, to its limits, also of a kind it does not know."""
    assert scan(encode(frame)) == ([frame], HEADER.size + len(frame.body), 0, 0)


def test_a_payload_is_the_end_of_the_body() -> None:
    """Expert counts that are handed over apart arrive as one body."""
    assert scan(encode(made(1, b"ab"), memoryview(b"cd"))).frames == [made(1, b"abcd")]


def test_a_frame_that_is_still_being_written_is_waited_for() -> None:
    """At every length a half-written last frame is left alone, and read whole once it is there."""
    first, second = stream([b"one", b"two"])
    for cut in range(len(second)):
        read = scan(first + second[:cut])
        assert (len(read.frames), read.damaged) == (1, 0)
        assert read.consumed == len(first)
    assert len(scan(first + second).frames) == 2


@given(BODIES, st.data())
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_without_an_error(bodies: list[bytes], data: st.DataObject) -> None:
    """Nothing that lies in a record file stops the reader, and it never claims to have read more than there is."""
    junk = data.draw(st.binary(max_size=200) | st.just(frames.MAGIC * 30))
    at = data.draw(st.integers(0, len(junk)))
    mixed = junk[:at] + b"".join(stream(bodies)) + junk[at:]
    for whole in (mixed, junk, mixed[: data.draw(st.integers(0, len(mixed)))]):
        read = scan(whole)
        assert 0 <= read.consumed <= len(whole)
        assert 0 <= read.damaged <= read.consumed


@given(BODIES, st.data())
@settings(max_examples=300, deadline=None)
def test_damage_loses_only_the_frames_it_touches(bodies: list[bytes], data: st.DataObject) -> None:
    """Flips, cuts and insertions between and in frames: every untouched frame is still read, in order."""
    pieces, touched = stream(bodies), set()
    for _ in range(data.draw(st.integers(0, 3))):
        i = data.draw(st.integers(0, len(pieces) - 1))
        at = data.draw(st.integers(0, max(len(pieces[i]) - 1, 0)))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert"]))
        if kind == "flip" and pieces[i]:
            bit = 1 << data.draw(st.integers(0, 7))
            pieces[i] = pieces[i][:at] + bytes([pieces[i][at] ^ bit]) + pieces[i][at + 1 :]
        elif kind == "cut":
            pieces[i] = pieces[i][:at]
        else:
            pieces[i] = pieces[i][:at] + data.draw(st.binary(min_size=1, max_size=70)) + pieces[i][at:]
        touched.add(i)
    kept = [made(i + 1, body) for i, body in enumerate(bodies) if i not in touched]
    read = [f for f in scan(b"".join(pieces)).frames if f in kept]
    assert read == kept


def test_damage_is_counted() -> None:
    """The operator sees how many bytes were passed over."""
    first, second = stream([b"one", b"two"])
    bent = first[:-1] + bytes([first[-1] ^ 1])
    assert scan(b"junk" + bent + second) == ([made(2, b"two")], 4 + len(bent) + len(second), 4 + len(bent), 0)


def test_a_damaged_length_is_not_believed() -> None:
    """A flipped length must not make the reader wait for bytes that never come: the header proves itself first."""
    first, second = stream([b"one", b"two"])
    at = struct.calcsize("<4sBBBBIII")
    bent = first[:at] + struct.pack("<I", 1 << 25) + first[at + 4 :]
    assert scan(bent + second).frames == [made(2, b"two")]


def test_a_proven_length_beyond_the_limit_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer gone mad cannot make the reader hold 4 GiB."""
    monkeypatch.setattr(frames, "MAX_BODY", 8)
    assert scan(encode(made(1, b"nine byte")) + encode(made(2))).frames == [made(2)]


def test_a_short_write_that_later_frames_overtook_is_passed_over() -> None:
    """A disk that filled up cut a frame; what was written afterwards is read, though it seems to lie inside."""
    cut = encode(made(1, bytes(4000)))[:300]
    later = encode(made(2)) + encode(made(3))
    assert scan(cut).frames == []
    assert scan(cut).consumed == 0
    assert scan(cut + later) == ([made(2), made(3)], len(cut + later), len(cut), 0)


def test_another_major_version_is_not_read_further() -> None:
    """Frames of a major version we do not know are left where they lie, and the version is told."""
    later = bytearray(encode(made(2)))
    later[4] = frames.MAJOR + 1
    struct.pack_into("<I", later, HEADER.size - 4, crc32(bytes(later[: HEADER.size - 4])))
    first = encode(made(1))
    assert scan(first + bytes(later) + encode(made(3))) == ([made(1)], len(first), 0, frames.MAJOR + 1)


def test_a_later_minor_version_is_read() -> None:
    """A newer writer of the same major version is understood."""
    later = bytearray(encode(made(1)))
    later[5] = frames.MINOR + 1
    struct.pack_into("<I", later, HEADER.size - 4, crc32(bytes(later[: HEADER.size - 4])))
    assert scan(bytes(later)).frames == [made(1)]


def test_roles_have_names_both_ways() -> None:
    """A role's number reads back as its name; one from a newer writer is shown, not refused."""
    assert [Role.name(Role.number(name)) for name in Role.NAMES] == list(Role.NAMES)
    assert Role.name(77) == "role-77"
    with pytest.raises(ValueError, match="role 'critic' is not one of trainer, rollout"):
        Role.number("critic")
