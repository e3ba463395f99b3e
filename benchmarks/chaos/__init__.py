"""Chaos on real runs: faults and disturbances drawn at random, played on the reference trainer with a real sidecar."""
