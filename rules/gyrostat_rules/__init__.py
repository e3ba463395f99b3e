"""The deciding core: inputs in, entries out. Pure functions over one state; no clock, no files, no threads.

``Engine`` (engine.py) shows the stages as one list. The same inputs give the same entries with the same ids,
so that replay, rule tests, backtests and crash recovery are all the same code (docs/architecture.md).
"""
