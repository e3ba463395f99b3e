"""The post-mortem of an incident or a whole run, read from its journal alone (``gyrostat report``)."""
