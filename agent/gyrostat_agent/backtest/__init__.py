"""Recorded cases fed to the engine again, and how well the rules found what was wrong in them (docs/backtest.md)."""
