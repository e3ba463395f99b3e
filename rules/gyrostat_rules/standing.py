"""Standing: whether this agent decides for the run, or one on another node does; and by which alone it may be acted.

Plain values, kept in the state; ``handover`` says what follows where it changes. An agent that was told of no cluster
stands alone: nothing here concerns it.
"""

from dataclasses import dataclass

ALONE, LEADER, FOLLOWER = "alone", "leader", "follower"
HEARD = "heard"  # what is said of a node whose agent is heard
NODE = "node "  # begins the name of the source by which is told how another node's agent fares


@dataclass(slots=True, frozen=True)
class Standing:
    """``node`` is this agent's, ``leader`` the node whose agent decides, '' where nobody is known to.

    ``term`` counts the leaders of this run: of two orders the one of the lower term is void.
    """

    word: str = ALONE
    node: str = ""
    leader: str = ""
    term: int = 0

    @property
    def follows(self) -> bool:
        """True where another decides, or it is not known yet who does."""
        return self.word == FOLLOWER


def decides(standing: Standing) -> str:
    """Who decides instead of this agent, in words."""
    return f"{standing.leader} decides for this run" if standing.leader else "no agent leads this run yet"
