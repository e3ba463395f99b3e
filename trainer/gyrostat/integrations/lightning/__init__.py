"""For Lightning's Trainer: one callback that tells and obeys.

::

    from gyrostat.integrations.lightning import GyrostatCallback
    gyrostat = GyrostatCallback("checkpoints", every=100)
    trainer = lightning.Trainer(callbacks=[gyrostat], ...)
    trainer.fit(model, data, ckpt_path=gyrostat.ckpt_path())

Under ``gyrostat run -- python train.py`` it finds its run; started by hand it does nothing. ``docs/integrations.md``.
"""

from gyrostat.integrations.lightning.callback import GyrostatCallback

__all__ = ["GyrostatCallback"]
