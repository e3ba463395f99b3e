"""A trainer that only says numbers: it takes the reference trainer's place where a test is about what is around it."""
