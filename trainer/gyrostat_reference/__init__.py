"""The reference trainer: a looped Mixture-of-Experts model trained by group RL on one CPU thread.

It is small (0.34 M parameters, a third of a second a step) and real: rollouts, a verifier, group advantages,
minibatches, router losses, asynchronous checkpoints, knobs and procedures for the sidecar. It is what the
product's end-to-end tests and its demonstration run against, and an example of how a trainer uses the SDK.

It is plain group RL (GRPO). GEPO (arXiv 2607.16850), OPEFO (2605.11491) and PivotRL (2603.21383) are not here.
"""
