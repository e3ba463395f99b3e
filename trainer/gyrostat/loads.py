"""Expert loads: the counts of tokens routed to each expert, from whatever holds them to a payload of bytes.

torch tensors on the host, numpy arrays, nested lists. They are shipped raw, not reduced: reducing costs the
trainer five times what shipping does.
"""

import struct
from typing import Any

from gyrostat.wire.records import load_payload

MAX_BYTES = 4 << 20  # of one step's counts: 61 layers, 4 loops and 256 experts take a sixteenth of it


def read_load(load: Any) -> bytes | None:
    """Payload of counts with one, two or three dimensions; None where they cannot be read as counts."""
    try:
        shape = shape_of(load)
        if hasattr(load, "detach"):
            load = _from_torch(load)
        counts = _from_array(load) if hasattr(load, "astype") else _from_lists(load)
        return load_payload(*shape, counts) if len(counts) == 4 * shape[0] * shape[1] * shape[2] else None
    except Exception:  # the trainer's own types raise what they like; the counts count as unreadable
        return None


def shape_of(load: Any) -> tuple[int, int, int]:
    """(layers, loops, experts) of counts with one, two or three dimensions; raises ValueError otherwise."""
    sizes = [int(n) for n in (load.shape if hasattr(load, "shape") else _nested(load))]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"expert counts have {len(sizes)} dimensions; one to three are read")
    layers = sizes[0] if len(sizes) > 1 else 1
    loops = sizes[1] if len(sizes) == 3 else 1
    experts = sizes[-1]
    if not 0 < 4 * layers * loops * experts <= MAX_BYTES:
        raise ValueError(f"{layers} x {loops} x {experts} expert counts are none, or more than {MAX_BYTES} bytes")
    return layers, loops, experts


def _from_torch(load: Any) -> Any:
    """The numpy view of a host tensor. Floating counts, as a histogram gives, go by float32."""
    load = load.detach()
    return (load.float() if load.is_floating_point() else load).numpy()


def _from_array(load: Any) -> memoryview:
    if load.dtype.kind not in "iu" and not ((load >= 0) & (load < 2**32)).all():  # NaN compares false
        raise ValueError("expert counts are not whole numbers from 0")
    return memoryview(load.astype("<u4", order="C").reshape(-1)).cast("B")


def _from_lists(load: Any) -> bytes:
    counts = _flat(load)
    return struct.pack(f"<{len(counts)}I", *counts)


def _nested(load: Any) -> list[int]:
    sizes = []
    while isinstance(load, (list, tuple)):
        sizes.append(len(load))
        load = load[0] if load else None
    return sizes


def _flat(load: Any) -> list[int]:
    return [i for part in load for i in _flat(part)] if isinstance(load, (list, tuple)) else [int(load)]
