"""For TRL's trainers and Transformers' own: one callback that tells and obeys.

::

    from gyrostat.integrations.transformers import GyrostatCallback
    trainer.add_callback(GyrostatCallback(trainer))

Under ``gyrostat run -- python train.py`` it finds its run; started by hand it does nothing. ``docs/trl.md``.
"""

from gyrostat.integrations.hf.callback import GyrostatCallback

__all__ = ["GyrostatCallback"]
