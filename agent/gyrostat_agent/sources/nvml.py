"""NVML: the driver's answers, through nvidia-ml-py. What it does not support is asked once and never again.

Called by ``gpus`` in the sampler's thread. The binding is imported here and only when it is first needed: the agent
runs without it. Promises nothing about how long the driver takes to answer.
"""

import contextlib
import importlib
from typing import Any

# NVML's own numbers, which never change; not every version of the binding has a name for each.
_NO_LIBRARY = 12
_LOST = {15: "is lost", 16: "must be reset"}
_GONE = {
    1: "it was shut down",
    9: "its kernel module is not loaded",
    18: "it is not the version of its kernel module, so it was updated under it; load that anew, or reboot",
}
_NEVER = {2, 3, 4, 6, 13, 22, 24, 25, 26}  # arguments, unsupported, forbidden, not there, no such function, versions


class NoDriver(Exception):
    """There is no driver to ask, or no longer; why, in words."""


class GpuLost(Exception):
    """The driver has no hold of this GPU any more; why, in words."""


class _Refused(Exception):
    """An answer that will be the same for ever."""


class Driver:
    """The driver, open until ``close``. Making one raises NoDriver where there is none."""

    def __init__(self) -> None:
        try:
            self.library: Any = importlib.import_module("pynvml")
        except ImportError:
            why = "nvidia-ml-py is not installed, so GPUs are not seen: pip install 'gyrostat[gpu]'"
            raise NoDriver(why) from None
        try:
            self.library.nvmlInit()
            self.version = str(self.library.nvmlSystemGetDriverVersion())
            count = int(self.library.nvmlDeviceGetCount())
        except self.library.NVMLError as error:
            self.close()
            raise NoDriver(_why(error)) from None
        self.devices = [Device(self.library, index) for index in range(count)]

    def close(self) -> None:
        """Let go of the driver, whatever state it is in."""
        with contextlib.suppress(self.library.NVMLError):
            self.library.nvmlShutdown()


class Device:
    """One GPU. ``uuid`` and ``name`` are '' until it has told them; ``trouble`` is the last error, in words."""

    def __init__(self, library: Any, index: int) -> None:
        self.index, self.uuid, self.name = index, "", ""
        self.trouble = ""
        self.handle: Any = None
        self._library = library
        self._refused: set[tuple[Any, ...]] = set()

    def find(self) -> None:
        """Get hold of it, anew where it was lost; ``handle`` stays None where that fails. Raises GpuLost, NoDriver."""
        self.handle = None
        with contextlib.suppress(_Refused):
            self.handle = self._answer(self._library.nvmlDeviceGetHandleByIndex, self.index)
        if self.handle is not None:
            self.uuid = str(self.ask("nvmlDeviceGetUUID") or self.uuid)
            self.name = str(self.ask("nvmlDeviceGetName") or self.name)

    def ask(self, question: str, *arguments: Any) -> Any:
        """The answer; None where there is none now, or never will be. Raises GpuLost, NoDriver."""
        if self.refuses(question, *arguments):
            return None
        try:
            return self._answer(getattr(self._library, question), self.handle, *arguments)
        except (_Refused, AttributeError, TypeError, ValueError):  # the last: another version of the binding
            self.refuse(question, *arguments)
            return None

    def refuse(self, question: str, *arguments: Any) -> None:
        """This is not asked of it any more."""
        self._refused.add((question, *arguments))

    def refuses(self, question: str, *arguments: Any) -> bool:
        """True for what it is not asked any more."""
        return (question, *arguments) in self._refused

    def _answer(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._library.NVMLError as error:
            self.trouble = str(error)
            if error.value in _LOST:
                raise GpuLost(_LOST[error.value]) from None
            if error.value in _GONE:
                raise NoDriver(_why(error)) from None
            if never_will(error.value):
                raise _Refused from None
            return None


def never_will(code: int) -> bool:
    """True for a refusal that will be the same for ever, by its number."""
    return code in _NEVER


def _why(error: Any) -> str:
    if error.value == _NO_LIBRARY:
        return "no NVIDIA driver is here (libnvidia-ml.so.1 is not found), so GPUs are not seen"
    return f"the NVIDIA driver does not answer, so GPUs are not seen: {_GONE.get(error.value, str(error))}"
