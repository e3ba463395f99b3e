"""Every detector tried on simulated runs: one in which it must speak, and a quiet one (``gyrostat selftest``)."""
