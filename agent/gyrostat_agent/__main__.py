"""``python -m gyrostat_agent`` is ``gyrostat``."""

import sys

from gyrostat_agent.console import main

sys.exit(main())
