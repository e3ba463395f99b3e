"""Tests for rules, written beside them: numbers in; alerts, incidents and actions out; all in virtual time."""
