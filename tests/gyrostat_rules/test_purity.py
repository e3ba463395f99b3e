"""Purity: the engine decides, and touches nothing. Else no replay could be trusted."""

import os
import subprocess
import sys


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_a_thousand_inputs_touch_nothing() -> None:
    """No file, no socket, no thread, no process, no clock, no dice: not in a thousand inputs of a bad night."""
    done = run(os.path.join(os.path.dirname(__file__), "pure_run.py"))
    assert (done.stdout, done.returncode) == ("pure\n", 0), done.stderr[-2000:]


def test_importing_it_touches_nothing() -> None:
    """The import itself opens no socket, starts no thread or process, and brings no torch or numpy along."""
    done = run(
        "-c",
        "import sys, threading\n"
        "def hook(name, args):\n"
        "    if name.startswith(('socket.', 'subprocess.', 'os.fork', 'os.exec', '_thread.start')):\n"
        "        raise RuntimeError(name)\n"
        "    if name == 'open' and isinstance(args[1], str) and set('wax+') & set(args[1]):\n"
        "        if '.pyc' not in str(args[0]):\n"
        "            raise RuntimeError(args)\n"
        "sys.addaudithook(hook)\n"
        "import gyrostat_rules.engine\n"
        "assert threading.active_count() == 1\n"
        "assert not {'torch', 'numpy', 'asyncio', 'multiprocessing'} & set(sys.modules), 'too much'\n",
    )
    assert done.returncode == 0, done.stderr[-2000:]
