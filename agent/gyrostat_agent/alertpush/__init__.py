"""Alertmanager is told here: its address, what waits for it, the post, and the thread that sends."""
