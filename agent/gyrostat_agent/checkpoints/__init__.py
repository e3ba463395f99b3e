"""Checkpoints as the sidecar sees them: found under a root, verified in a child, watched until they go.

``source`` is what the loop drains; ``verifier`` hands paths to the child, ``child`` is that process, ``verify``
what it does, ``tensors`` reads the header of a safetensors file, ``reference`` the manifest, ``watch`` says when
to look again. numpy is imported by ``verify`` alone, which is why it is not re-exported: the sidecar's own process
stays small, and a file that is cut short while it is mapped kills the child instead of the sidecar.

::

    CheckpointError       a checkpoint that must not be believed, in a sentence
"""

from gyrostat_agent.checkpoints.reference import CheckpointError, Limits
from gyrostat_agent.checkpoints.source import CheckpointSource
from gyrostat_agent.checkpoints.verifier import ChildVerifier, InlineVerifier, Verifier

__all__ = ["CheckpointError", "CheckpointSource", "ChildVerifier", "InlineVerifier", "Limits", "Verifier"]
