"""The peak memory of one call: how much more the process held meanwhile than just before it.

Linux keeps the exact peak of a process and lets it be reset; elsewhere a thread looks as often as
it can. Both see everything that the process holds, whatever framework asked for it.
"""

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

MIB = 2**20

RESOLUTION = 2**19
"""Bytes; what is less cannot be told from nothing.

Linux counts pages in batches, processor by processor, and small objects find room in pages that are
there: two runs differ by up to 0.4 MiB.
"""

GIVING_BACK = {"MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""The environment in which the GNU C library gives back what is freed at once.

What it keeps for later would hide the next peak, and what it cannot join would add to it: peaks are
then up to twice as high, and another number each time. Times are not to be taken like this.
"""

_LOOKS = 0.0005
_OWN = Path("/proc/self")


def peak(action: Callable[[], object]) -> int:
    """Return how many bytes more than now the process holds at the peak of `action`."""
    gc.collect()
    return (_exactly if _resets() else _sampled)(action)


def _resets() -> bool:
    """Say whether the system's own peak could be reset; it is, where it can be."""
    try:
        (_OWN / "clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _exactly(action: Callable[[], object]) -> int:
    before = _status("VmRSS")
    _resets()
    action()
    return max(0, _status("VmHWM") - before)


def _status(field: str) -> int:
    for line in (_OWN / "status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"the system tells no {field}")


def _sampled(action: Callable[[], object]) -> int:
    process = psutil.Process()
    before, done = process.memory_info().rss, threading.Event()
    seen = [before]

    def look() -> None:
        while not done.wait(_LOOKS):
            seen.append(process.memory_info().rss)

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    try:
        action()
        seen.append(process.memory_info().rss)
    finally:
        done.set()
        watch.join()
    return max(seen) - before
