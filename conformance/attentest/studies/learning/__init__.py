"""Learning: the models of backends trained on a small task, from equal weights, on equal data."""

from attentest.studies.learning.learn import learn
from attentest.studies.learning.regime import Regime
from attentest.studies.learning.result import Curve, Learning, Point, Spread
from attentest.studies.learning.task import BadTask, Task
from attentest.studies.learning.tasks import TASKS

__all__ = ["TASKS", "BadTask", "Curve", "Learning", "Point", "Regime", "Spread", "Task", "learn"]
