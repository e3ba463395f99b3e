"""Actuators carry an action out. Each says how an intent without an outcome is settled after a crash."""
