"""A user's script: GRPO of a tiny Qwen3-MoE, and Gyrostat's three lines. ``python train_grpo.py FOLDER STEPS``."""

import sys
from pathlib import Path

import trl_tiny as tiny

from gyrostat.integrations.transformers import GyrostatCallback

if __name__ == "__main__":
    trainer = tiny.grpo(Path(sys.argv[1]), steps=int(sys.argv[2]), save_strategy="steps", save_steps=10)
    trainer.add_callback(GyrostatCallback(trainer))
    trainer.train()
    print("TRAINED", trainer.state.global_step)
