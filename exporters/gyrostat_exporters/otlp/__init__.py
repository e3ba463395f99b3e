"""OTLP: views and journal entries as the bodies of OpenTelemetry's posts, by its own SDK's types and encoders.

Whoever sends them, and the page about it, are elsewhere (``gyrostat_agent.otlppush``). OpenTelemetry is imported by the
modules below and nowhere else, and they only where somebody asked for it: it is an extra, 0.2 s and some megabytes.
"""
