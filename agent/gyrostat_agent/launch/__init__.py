"""Launch: what ``gyrostat run`` does for a command that knows nothing of us: reads its output, knows its flags.

``tee`` is a process of its own, ``tail`` the supervisor's side of it; ``flags`` the table of launchers and how they are
told to resume; ``capabilities`` says what is missing; ``person`` when the run must not simply be queued again.
"""
