"""The statements that the journal runs: what each commit writes, and what is asked of it."""

ADD_TURN = "INSERT INTO turns VALUES (?, ?, ?, ?, ?)"
ADD_INPUT = "INSERT OR REPLACE INTO inputs VALUES (?, ?)"
ADD_LET_GO = "INSERT INTO letgo VALUES (?, ?, ?, ?, ?, ?, ?)"
ADD_ENTRY = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)"
SET_OFFSET = "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)"
OFFSETS = "SELECT source, position FROM offsets WHERE source <> x'FF'"
HEAD = "SELECT seq, hash FROM turns ORDER BY seq DESC LIMIT 1"
HASH = "SELECT hash FROM turns WHERE seq = ?"
COUNT = "SELECT position FROM offsets WHERE source = x'FF'"
TURNS = (
    "SELECT t.seq, t.given, i.given FROM turns t LEFT JOIN inputs i ON i.seq = t.seq"
    " WHERE t.seq > ? AND t.seq <= ? ORDER BY t.seq LIMIT ?"
)
TURN_ENTRIES = "SELECT seq, body FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq, place"
ENTRIES = (
    "SELECT seq, place, body FROM entries WHERE (seq, place) > (?, ?) AND (seq, place) < (?, ?)"
    " AND (? = '' OR instr(?, ',' || kind || ','))"
)
OLDEST_FIRST = ENTRIES + " ORDER BY seq, place LIMIT ?"
NEWEST_FIRST = ENTRIES + " ORDER BY seq DESC, place DESC LIMIT ?"
ADD_SNAPSHOT = "INSERT OR REPLACE INTO snapshots (seq, hash, seal, state, step) VALUES (?, ?, ?, ?, ?)"
DROP_SNAPSHOTS = (
    "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)"
    " AND NOT instr(?, ',' || seq || ',')"
)
SNAPSHOT_ROWS = (
    "SELECT s.seq, s.hash, s.seal, s.state, s.step, t.hash FROM snapshots s LEFT JOIN turns t ON t.seq = s.seq"
    " WHERE s.seq BETWEEN ? AND ? ORDER BY s.seq"
)
