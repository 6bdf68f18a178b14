"""The time that trials may take."""

import time


class Clock:
    """The CPU time that trials may take in all: how busy the machine is changes no reading."""

    EVERY = 8
    """The clock is read once in so many trials: reading it costs a part of one."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.thread_time() + seconds
        self.ran_out, self.asked = False, 0

    def rings(self) -> bool:
        """Say whether the time is up."""
        if not self.ran_out and self.asked % self.EVERY == 0:
            self.ran_out = time.thread_time() > self.end
        self.asked += 1
        return self.ran_out
