"""Cluster: one agent a node, one of them decides for the run. The election so far; no agent takes part in it yet.

lease       who decides, as it stands where all agents can read it; each kind of store has one of its own
election    when to take it, renew it, give way, and stop acting: pure functions over what was seen
candidate   the election as it runs in one agent
lockfile    the lease as a file beside the checkpoints
"""
