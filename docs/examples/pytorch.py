"""Plain PyTorch, watched, guarded and steered by ten lines: those marked ``# gyrostat``.

::

    gyrostat run -- python docs/examples/pytorch.py

Batch 30 is bad: its step is passed over, and training goes on. Without ``gyrostat run`` nothing is watched, and the
guard guards all the same.
"""

import torch

import gyrostat  # gyrostat

STEPS, BAD = 60, 30
turned = {"lr_scale": 1.0, "stop": 0.0}


def batch_of(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Yours."""
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(step))
    return x, x.sum(1, keepdim=True) * (float("nan") if step == BAD else 1.0)


torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
telemetry, guard = gyrostat.Telemetry(), gyrostat.StepGuard()  # gyrostat
scale = gyrostat.Knob(  # gyrostat
    "lr_scale", lambda: turned["lr_scale"], lambda v: turned.update(lr_scale=v), 0.01, 1.0, max_factor=2.0
)
control = gyrostat.Control(telemetry, [scale], {"stop": lambda _: turned.update(stop=1.0)})  # gyrostat
for step in range(1, STEPS + 1):
    control.apply(step)  # gyrostat
    if turned["stop"]:  # gyrostat
        break
    x, y = batch_of(step)
    optimizer.param_groups[0]["lr"] = 1e-2 * turned["lr_scale"]  # gyrostat
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if guard.allows(step, loss.item(), norm.item()):  # gyrostat
        optimizer.step()
    telemetry.record(step, loss=loss.item(), grad_norm=norm.item(), **turned, **guard.values())  # gyrostat
telemetry.close()  # gyrostat
print(f"TRAINED {step} finite={all(bool(p.isfinite().all()) for p in model.parameters())} skipped={guard.skipped}")
