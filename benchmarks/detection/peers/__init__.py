"""The tools that a user could pick instead, each behind the same small interface, one a module."""
