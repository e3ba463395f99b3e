"""What a rule is, what it saw of one run, and why it spoke or kept silent at a step (``gyrostat rules explain``)."""
