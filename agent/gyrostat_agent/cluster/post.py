"""Post: where one agent stands in the election, as its loop and its sender read it."""

from typing import NamedTuple


class Post(NamedTuple):
    """This agent ``leads``, or ``leader`` does, '' where nobody is known to. ``fault`` in words.

    ``address`` (HOST:PORT) is where the one who leads takes what is forwarded; ``term`` counts the leaders of this run.
    """

    leads: bool = False
    leader: str = ""
    address: str = ""
    term: int = 0
    fault: str = ""
