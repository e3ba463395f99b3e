"""A diagnosis of logs that are already there: ``examination`` reads and judges, ``advice`` says what to do about it."""
