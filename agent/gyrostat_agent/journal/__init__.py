"""The journal: the durable, hash-chained log of turns, and its bytes.

``store`` is what the agent calls; ``codec`` says how inputs and entries are written down, ``chain`` how they are
chained and checked, ``schema`` and ``statements`` how the file is opened and written, ``errors`` what can go wrong.
``retention`` says what is kept and for how long, ``windows`` what of it around incidents, ``letgo`` how it is noted.
"""

from gyrostat_agent.journal.chain import Verdict
from gyrostat_agent.journal.codec import decode, decode_entry, encode, encode_entry
from gyrostat_agent.journal.errors import CodecError, GoneError, JournalError
from gyrostat_agent.journal.store import Journal, Turn

__all__ = [
    "CodecError",
    "GoneError",
    "Journal",
    "JournalError",
    "Turn",
    "Verdict",
    "decode",
    "decode_entry",
    "encode",
    "encode_entry",
]
