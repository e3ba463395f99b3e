"""Packs that ship with Gyrostat, as data: whoever feeds the engine reads the files and hands in their text.

``NAMES``: their files, in the order in which they are read as one.
"""

NAMES = ("numerics", "rl", "moe", "throughput", "checkpoints", "inference", "hardware")
