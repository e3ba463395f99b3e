"""The run of mend_grpo.py without a line of Gyrostat: ``python plain_grpo.py FAULT FOLDER GATE``.

What it prints is all that anybody sees of it. Called by test_from_the_log.py under ``gyrostat run``.
"""

import mend_grpo

_STEPS = {"nan_reward": 20, "entropy": 50, "router": 45}  # nobody mends it: it shows by then, or never

if __name__ == "__main__":
    mend_grpo.SETTINGS[mend_grpo.FAULT]["steps"] = _STEPS.get(mend_grpo.FAULT, 20)
    trainer = mend_grpo.prepared(mend_grpo.Seen())
    trainer.train()
