"""Cluster: one agent a node, one of them decides for the run (docs/cluster.md).

lease       who decides, as it stands where all agents can read it; each kind of store has one of its own
election    when to take it, renew it, give way, and stop acting: pure functions over what was seen
candidate   the election as it runs in one agent
lockfile    the lease as a file beside the checkpoints; latelease: one whose store may not be there yet
digest      what of all that an agent sees is told to the one that decides; parcel: as bytes, and back
outbox      what waits to be told, bounded; sender: tells it
intake      takes what others tell; roll: which of them are not heard any more
member      all of that, as the loop calls it; joining: put together from the settings
"""
