"""People's words over HTTP: who may say them (a token), which they are, how they reach the agent and come back.

::

    tokenfile    what whoever speaks must know; a file of the agent's alone
    wrongtokens  guesses, slowed down and said
    words        which verbs may come over a network, with which arguments
    replies      the agent's answers, from the loop to whoever waits for one
    wordserver   the server: every check in one list; lays words where the command line lays them
    notice       where it listens and which token it wants, for the command line
    client       the other side: one word to an agent by its address

A word goes the way of a file in ``agent/commands``: it is journaled, used once and replayed as any other.
"""
