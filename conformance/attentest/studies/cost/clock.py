"""The time of a call: what passes on the clock, without what the thread waits for a processor.

On a busy machine a call takes longer for no fault of its own. Linux tells how long a thread was
ready and had no processor; where that is not told, it counts.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def seconds(action: Callable[[], object], often: int = 1) -> float:
    """Return the seconds that one call of `action` takes, on average over `often` calls.

    As with timeit, no garbage is collected meanwhile.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _scheduled() as waited:
            start, before = time.perf_counter(), waited()
            for _ in range(often):
                action()
            wait = waited() - before  # read first: no more is taken off than has passed
            return (time.perf_counter() - start - wait) / often
    finally:
        if collecting:
            gc.enable()


@contextmanager
def _scheduled() -> Iterator[Callable[[], float]]:
    """Yield what tells how many seconds this thread has waited for a processor since its birth."""
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        yield lambda: 0.0
        return
    try:
        yield lambda: int(os.pread(file, 100, 0).split()[1]) * 1e-9
    finally:
        os.close(file)
