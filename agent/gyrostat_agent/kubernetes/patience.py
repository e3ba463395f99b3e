"""Patience: how long to wait for an API server that does not answer, and when to stop waiting."""

import random
from collections.abc import Callable

from gyrostat_agent.kubernetes.course import Over, Wait
from gyrostat_agent.kubernetes.progress import Order
from gyrostat_agent.kubernetes.refusals import AwayError, ConflictError, ForbiddenError, KubernetesError, MissingError
from gyrostat_agent.kubernetes.turn import Turns

POLL_SECONDS = 2.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
GRACE = 30.0  # seconds after an order's end in which what was begun may still be seen to be done


def pause_after(failures: int, asked: float = 0.0) -> float:
    """Seconds until the next try after so many in a row failed; never less than the server asked for.

    Spread over half of it, so that the agents of a thousand pods do not come back in the same moment.
    """
    most = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 10))
    return max(asked, most * random.uniform(0.5, 1.0))


def carry_out(
    turns: Turns, order: Order, words: Callable[[], dict[str, str]], clock: Callable[[], float],
    wait: Callable[[float], bool], say: Callable[[str], None],
) -> Over | None:  # fmt: skip
    """Take turns until the order is over; None where nobody knows: told to end, or no answer until it has expired.

    ``wait(seconds)`` is True where we are told to end. What is said is said once a change.
    """
    failures, said = 0, ""
    while clock() < order.until + GRACE:
        pause = POLL_SECONDS
        try:
            move = turns.take(order, words())
            failures = 0
            if isinstance(move, Over):
                return move
            now_said = move.why if isinstance(move, Wait) else ""
        except AwayError as error:
            pause, failures, now_said = pause_after(failures, error.after), failures + 1, str(error)
        except ConflictError as error:
            now_said = str(error)
        except (ForbiddenError, MissingError) as error:
            return Over(False, str(error))
        except KubernetesError as error:  # rejected: it would be again
            return Over(False, str(error))
        if now_said != said:
            said = now_said
            say(f"directive {order.number}: {said}")
        if wait(pause):
            return None
    return None
