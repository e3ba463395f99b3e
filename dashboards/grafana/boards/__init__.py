"""The boards, in the order of a look: all runs, one run, what it learns, its experts, its machines, the agent."""

from boards import agent, fleet, machines, moe, rl, run

BOARDS = (fleet.BOARD, run.BOARD, rl.BOARD, moe.BOARD, machines.BOARD, agent.BOARD)
