"""Shadow: what the agent would have done against what came, out of journals, as evidence for arming a rule."""
