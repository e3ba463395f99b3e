"""Packs that ship with Gyrostat, as data. Whoever feeds the engine reads the file and hands in its text."""
