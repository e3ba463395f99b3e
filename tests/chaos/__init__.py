"""The crash model: a world in virtual time in which any process may die at any moment, and what must hold in it."""
