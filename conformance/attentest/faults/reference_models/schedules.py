"""The schedules of the two reference models: piece by piece, and as the smaller of two curves."""

import math

from attentest.faults.reference_models.hooks import Hooks


class PlainSchedule(Hooks):
    """A condition between two pieces, powers and shares."""

    def peak_rate(self) -> float:
        """Return the rate of the warm-up step."""
        root = self.warmup_steps() ** -0.5 if self.choices.schedule == "noam" else 1.0
        return float(self.rate_factor() * self.width_factor() * root)

    def rising(self, step: int) -> float:
        """Return the rate on the line of the warm-up."""
        return self.peak_rate() * step / self.warmup_steps()

    def falling(self, step: int) -> float:
        """Return the rate on the curve after the warm-up."""
        warmup, last = self.warmup_steps(), self.sizes.total_steps
        match self.choices.schedule:
            case "linear":
                share = max(0.0, (last - step) / (last - warmup))
            case "cosine":
                share = 0.5 * (
                    1.0 + math.cos(math.pi * min(1.0, (step - warmup) / (last - warmup)))
                )
            case "constant":
                share = 1.0
            case _:
                share = math.sqrt(warmup / step)
        return self.peak_rate() * share

    def join_rates(self, step: int) -> float:
        """Return the rate of a step of the schedule, from the two pieces."""
        return self.rising(step) if step < self.warmup_steps() else self.falling(step)


class FusedSchedule(Hooks):
    """The smaller of two curves; logarithms in place of powers, and the square of a cosine."""

    def peak_rate(self) -> float:
        """Return the rate of the warm-up step."""
        peak = self.rate_factor() * self.width_factor()
        return peak / math.sqrt(self.warmup_steps()) if self.choices.schedule == "noam" else peak

    def rising(self, step: int) -> float:
        """Return the rate on the line of the warm-up."""
        return step * (self.peak_rate() / self.warmup_steps())

    def falling(self, step: int) -> float:
        """Return the rate on the curve after the warm-up, which is level before it."""
        warmup, last = self.warmup_steps(), self.sizes.total_steps
        after = min(1.0, max(0, step - warmup) / max(1, last - warmup))
        match self.choices.schedule:
            case "linear":
                return self.peak_rate() * (1.0 - after)
            case "cosine":
                return self.peak_rate() * math.cos(0.5 * math.pi * after) ** 2
            case "constant":
                return self.peak_rate()
            case _:
                return self.peak_rate() * math.exp(0.5 * math.log(warmup / max(step, 1)))

    def join_rates(self, step: int) -> float:
        """Return the rate of a step of the schedule, from the two curves."""
        return min(self.rising(step), self.falling(step))
