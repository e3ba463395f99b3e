"""TFRecords: the framing is TensorFlow's, and the way on after damage is found at once."""

import time

import pytest
from eventbytes import framed, header, masked

from gyrostat_agent.sources.tfrecords import HEAD, MOST, checksum, find, intact, length


@pytest.mark.parametrize(
    ("data", "crc"),
    [(bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E), (b"123456789", 0xE3069283)],
    ids=["zeros", "ones", "rising", "digits"],
)
def test_the_checksum_is_crc_32c(data: bytes, crc: int) -> None:
    """The vectors of RFC 3720 and of every catalogue of CRCs, masked as TensorFlow does it."""
    assert checksum(data) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert checksum(data).to_bytes(4, "little") == masked(data)


def test_a_record_is_known_by_both_checksums() -> None:
    """A header that fits gives the length; data that was touched is not intact."""
    record = framed(b"some data")
    assert length(record, 0) == 9 and intact(record, 0, 9)
    touched = record.replace(b"some", b"same")
    assert length(touched, 0) == 9 and not intact(touched, 0, 9)
    assert length(b"\x08" + record[1:], 0) == -1


def test_a_length_beyond_the_bound_is_no_header() -> None:
    """Even with a checksum that fits: nobody is made to take 16 MiB and more into memory."""
    assert length(header(MOST), 0) == MOST and length(header(MOST + 1), 0) == -1


@pytest.mark.parametrize("junk", [b"", b"x", b"\0" * 7, b"abc\0\0\0\0\0\0def", bytes(range(256)) * 3])
def test_the_next_header_is_found_behind_junk(junk: bytes) -> None:
    """Whatever stands in front of it."""
    assert find(junk + framed(b"data"), 0) == len(junk)


def test_where_there_is_no_header_none_is_found() -> None:
    """Nor where only a part of one is there."""
    assert find(b"nothing at all \0\0\0\0\0\0\0\0 in here", 0) == -1
    assert find(b"junk" + framed(b"data")[: HEAD - 1], 0) == -1


@pytest.mark.parametrize("junk", [b"\0", b"\0\0\0\0\0\x01", b"\0\0\0\0\0\0\0\0\x01\x01\x01\x01\x01"])
def test_looking_for_a_header_costs_no_more_than_its_bytes(junk: bytes) -> None:
    """A hole of a MiB, or bytes made to look like headers: seconds would be too long, a search is linear."""
    data = (junk * (1 << 20))[: 1 << 20]
    began = time.process_time()
    assert find(data + framed(b"data"), 0) == len(data)
    assert time.process_time() - began < 20
