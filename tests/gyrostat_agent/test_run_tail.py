"""The tail, in real processes: output reaches its reader byte for byte, whoever dies, and the agent has a copy."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from output_runs import Begin, argv, beginning
from supervised_runs import DEADLINE, environment, python, until

from gyrostat_agent.launch import tee
from gyrostat_agent.launch.tee import Copy


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts supervisors."""
    yield from beginning(tmp_path)


# -- what the reader gets -----------------------------------------------------------------------------


def test_bytes_are_passed_on_exactly(begin: Begin) -> None:
    """All of them, of both streams, with the status: not text, not lines, nothing added."""
    program = "import os, sys\nb = bytes(range(256))\nfor _ in range(8000): os.write(1, b)\n"
    run = begin(*python(program + "os.write(2, b'no newline \\xff'); sys.exit(7)"))
    assert run.end() == (7, bytes(range(256)) * 8000, b"no newline \xff")


def test_one_pipe_for_both_keeps_their_order(begin: Begin) -> None:
    """``2>&1``: lines of the two come out as they were written."""
    run = begin(*python("import os\nfor i in range(400): os.write(1 + i % 2, b'%d\\n' % i)"), stderr=subprocess.STDOUT)
    assert run.end()[1].split() == [b"%d" % i for i in range(400)]


def test_a_reader_that_goes_ends_the_command_as_ever(begin: Begin) -> None:
    """``| head -1``: the command dies of SIGPIPE, and does not write to nobody for ever."""
    run = begin("yes")
    assert run.process.stdout is not None
    run.process.stdout.read(2)
    run.process.stdout.close()
    assert run.process.wait(DEADLINE) == -signal.SIGPIPE


def test_a_command_that_is_not_there_leaves_no_tee(begin: Begin) -> None:
    """Its one line and status, and no process that waits for its output."""
    status, out, err = (run := begin("/no/such/program")).end()
    assert (status, out, err.count(b"\n")) == (127, b"", 1)
    until(lambda: not run.tees())


def test_what_is_left_behind_still_reaches_the_reader(begin: Begin, tmp_path: Path) -> None:
    """A process that outlives the command writes where it would without us, and holds nobody up."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    run = begin("sh", "-c", '(read word <"$0"; echo late) & echo early', str(gate))
    assert run.process.wait(DEADLINE) == 0
    gate.write_text("go\n")
    assert run.process.stdout is not None and run.process.stdout.read() == b"early\nlate\n"


# -- who dies -----------------------------------------------------------------------------------------

ECHO = "import sys\nprint('up', flush=True)\nfor line in sys.stdin: print(line, end='', flush=True)"


def test_a_tee_that_dies_is_begun_again(begin: Begin) -> None:
    """SIGKILL to it: the trainer goes on, and what it writes next arrives."""
    run = begin(*python(ECHO), stdin=subprocess.PIPE)
    assert run.process.stdout is not None and run.process.stdin is not None
    assert run.process.stdout.readline() == b"up\n"
    until(lambda: len(run.tees()) == 2)
    first = run.tees()
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(run.tees()) == 2 and not {*run.tees()} & {*first})
    run.process.stdin.write(b"and on\n")
    run.process.stdin.flush()
    assert run.process.stdout.readline() == b"and on\n"
    assert run.end()[0] == 0


def test_a_supervisor_that_dies_takes_nothing_along(begin: Begin) -> None:
    """SIGKILL to it: the trainer goes on, its output too, and the tees end with it."""
    run = begin(*python(ECHO), stdin=subprocess.PIPE)
    assert run.process.stdout is not None and run.process.stdin is not None
    assert run.process.stdout.readline() == b"up\n"
    run.process.kill()
    assert run.process.wait(DEADLINE) == -signal.SIGKILL
    run.process.stdin.write(b"still here\n")
    run.process.stdin.flush()
    assert run.process.stdout.readline() == b"still here\n"
    run.process.stdin.close()
    assert run.process.stdout.read() == b""
    until(lambda: not run.tees())


def test_a_signal_to_all_processes_of_a_step_cuts_no_output_short(begin: Begin) -> None:
    """Slurm signals each of them: the tees pass on what the trainer says about it."""
    program = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {15})\nprint('up', flush=True)\n"
    run = begin(*python(program + "signal.sigwait({15})\nprint('saving', flush=True)"))
    assert run.process.stdout is not None and run.process.stdout.readline() == b"up\n"
    for pid in [*run.tees(), run.process.pid]:
        os.kill(pid, signal.SIGTERM)
    assert run.end()[:2] == (0, b"saving\n")


# -- terminals and files ------------------------------------------------------------------------------


def test_a_terminal_is_left_alone(tmp_path: Path) -> None:
    """The command sees its terminal, of its size, and no tee is between them."""
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    program = "import os, sys; print(sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size().columns)"
    pid, terminal = pty.fork()
    if not pid:
        os.execve(argv(run)[0], argv(run, "sh", "-c", 'stty cols 123; exec "$@"', "-", *python(program)), environment())
    seen = b""
    while b"\n" not in seen:
        seen += os.read(terminal, 1024)
    assert seen == b"True True 123\r\n"
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert not (run / "output.log").exists()


def test_a_file_stays_the_commands_own_and_is_read_from_where_it_stands(begin: Begin, tmp_path: Path) -> None:
    """``>> job.out``: the command writes the file itself; what stood in it before is another run's."""
    place = tmp_path / "job.out"
    place.write_text("step 1 loss nan\n")
    program = "import os; print(os.fstat(1).st_ino, flush=True)"
    with place.open("ab") as file:
        run = begin(*python(program), stdout=file)
        assert run.end()[0] == 0
    mine = f"{place.stat().st_ino}\n"
    assert place.read_text() == "step 1 loss nan\n" + mine
    assert run.log == mine.encode()


# -- the copy -----------------------------------------------------------------------------------------


def test_the_copy_has_whole_lines_of_both_streams(begin: Begin) -> None:
    """Two writers, half lines at a time: no line is torn, and both streams are there."""
    program = "import os\nfor i in range(50):\n for fd in (1, 2): os.write(fd, b'half ')\n"
    run = begin(*python(program + " for fd in (1, 2): os.write(fd, b'line %d %d\\n' % (fd, i))"))
    assert run.end()[0] == 0
    assert sorted(run.log.split(b"\n")) == sorted(
        [b"half line %d %d" % (fd, i) for i in range(50) for fd in (1, 2)] + [b""]
    )
    assert os.stat(run.path / "output.log").st_mode & 0o777 == 0o600


def test_a_bar_that_stands_is_not_held_back(tmp_path: Path) -> None:
    """A progress bar has no end of line: it is told when nothing follows it, so that a step stands before its row."""
    log = tmp_path / "log"
    log.touch()
    copy = Copy(str(log), str(tmp_path))
    copy.take(b"\r 3/10 [")
    assert log.read_bytes() == b"\r" and copy.waits
    copy.end()
    assert log.read_bytes() == b"\r 3/10 [\r"


def test_the_copy_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much a trainer prints: its first lines and its last stay, and offsets do not move."""
    monkeypatch.setattr(tee, "_HEAD", 1 << 16)
    monkeypatch.setattr(tee, "_KEPT", 1 << 18)
    log = tmp_path / "log"
    log.touch()
    copy = Copy(str(log), str(tmp_path))
    line = b"x" * 4095 + b"\n"
    for _ in range(1000):
        copy.take(line)
    found = log.stat()
    assert found.st_size == 4096 * 1000
    assert found.st_blocks * 512 < (1 << 18) + 4 * (1 << 16)
    data = log.read_bytes()
    assert data.startswith(line) and data.endswith(line * 60)


def test_our_own_lines_are_no_trainers_words(tmp_path: Path) -> None:
    """In a file for both streams, as Slurm's, stands what the agent says: it is not told its own news again."""
    log = tmp_path / "log"
    log.touch()
    copy = Copy(str(log), str(tmp_path))
    copy.take(b"gyrostat: step 3  incident i0001: loss is nan\nstep 4 loss 1.0\ngyros")
    copy.take(b"tat: step 4  x: loss nan\nsaid by gyrostat: loss\ngyrostat: y\n")
    assert log.read_bytes() == b"step 4 loss 1.0\nsaid by gyrostat: loss\n"


@pytest.mark.parametrize("trouble", ["no folder", "a link", "a trainer with the SDK"])
def test_what_keeps_the_copy_from_being_written_touches_nothing_else(
    tmp_path: Path, trouble: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """No error is raised and it is said once; what the SDK tells is not told a second time, which is no fault."""
    log = tmp_path / "folder" / "log"
    if trouble != "no folder":
        log.parent.mkdir()
    if trouble == "a link":
        log.symlink_to(tmp_path / "precious")
        (tmp_path / "precious").touch()
    elif trouble == "a trainer with the SDK":
        log.touch()
        (tmp_path / "trainer-00000-0123456789.000").touch()
    copy = Copy(str(log), str(tmp_path))
    for number in range(10):
        copy.take(b"step %d\n" % number)
    copy.end()
    assert not log.exists() or log.read_bytes() == b""
    assert capfd.readouterr().err.count("not all that is printed can be read") == (trouble != "a trainer with the SDK")


def test_a_slow_disk_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The output must not wait for the copy: after three slow writes there is none for a while, and that is said."""
    monkeypatch.setattr(tee, "_SLOW", -1.0)
    log = tmp_path / "log"
    log.touch()
    copy = Copy(str(log), str(tmp_path))
    for number in range(10):
        copy.take(b"%d\n" % number)
    assert log.read_bytes() == b"0\n1\n2\n"
    assert capfd.readouterr().err.count("is slow, and is left alone for 60 s") == 1
