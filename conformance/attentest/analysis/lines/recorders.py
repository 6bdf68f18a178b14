"""The choice of what records a backend's operations: torch's, JAX's, or nothing."""

import sys
from typing import Any

from attentest.analysis.lines.recording import Recorder


def recorder(backend: Any) -> Recorder | None:
    """Return what records the calls of `backend`; None where nothing can be recorded."""
    if is_jax(backend):
        from attentest.analysis.lines.jax_recording import JaxRecording

        return JaxRecording
    if "torch" in sys.modules:
        from attentest.analysis.lines.torch_recording import TorchRecording

        return TorchRecording
    return None


def is_jax(backend: Any) -> bool:
    """Say whether a backend computes in JAX, by the adapter for it."""
    adapter = sys.modules.get("attentest_spec.jax")
    return adapter is not None and isinstance(backend, adapter.JaxBackend)
