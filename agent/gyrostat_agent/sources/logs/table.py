"""The table of formats, in the order in which they are asked. A new one is a module in ``formats`` and a line here."""

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.formats.areal import AREAL
from gyrostat_agent.sources.logs.formats.deepspeed import DEEPSPEED
from gyrostat_agent.sources.logs.formats.entropylog import ENTROPY_LOG
from gyrostat_agent.sources.logs.formats.expertload import EXPERT_LOAD
from gyrostat_agent.sources.logs.formats.generic import GENERIC
from gyrostat_agent.sources.logs.formats.hf import HF
from gyrostat_agent.sources.logs.formats.hfstate import HF_STATE
from gyrostat_agent.sources.logs.formats.lightning import LIGHTNING
from gyrostat_agent.sources.logs.formats.llamafactory import LLAMAFACTORY
from gyrostat_agent.sources.logs.formats.megatron import MEGATRON
from gyrostat_agent.sources.logs.formats.nemo_rl import NEMO_RL
from gyrostat_agent.sources.logs.formats.olmo import OLMO
from gyrostat_agent.sources.logs.formats.openinstruct import OPEN_INSTRUCT
from gyrostat_agent.sources.logs.formats.openrlhf import OPENRLHF
from gyrostat_agent.sources.logs.formats.prime_rl import PRIME_RL
from gyrostat_agent.sources.logs.formats.roll import ROLL
from gyrostat_agent.sources.logs.formats.slime import SLIME
from gyrostat_agent.sources.logs.formats.swift import SWIFT
from gyrostat_agent.sources.logs.formats.torchtitan import TORCHTITAN
from gyrostat_agent.sources.logs.formats.torchtune import TORCHTUNE
from gyrostat_agent.sources.logs.formats.trainlog import TRAIN_LOG
from gyrostat_agent.sources.logs.formats.verl import VERL

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        VERL, HF, HF_STATE, LLAMAFACTORY, SWIFT, MEGATRON, DEEPSPEED, OPENRLHF, SLIME, PRIME_RL, NEMO_RL, AREAL,
        TORCHTITAN, TORCHTUNE, ROLL, OLMO, OPEN_INSTRUCT, LIGHTNING, TRAIN_LOG, ENTROPY_LOG, EXPERT_LOAD, GENERIC,
    )
}  # fmt: skip
__all__ = ["FORMATS", "GENERIC"]
