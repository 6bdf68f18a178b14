"""The installed backends whose model is their own; libraries are there in few envs."""

from importlib.metadata import entry_points

from attentest_spec import registry
from attentest_spec.registry import EXTRA, GROUP

OWN = sorted(
    entry.name
    for entry in entry_points(group=GROUP)
    if entry.dist and EXTRA not in entry.dist.metadata.get_all("Provides-Extra", [])
)

WHOLE = [name for name in OWN if "model" in registry.load(name).components]
"""Those of them that provide a whole model."""
