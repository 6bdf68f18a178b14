"""The catalogue of faults: realistic mistakes that the suite itself is tested against.

The faults of a chapter are in the module or package of its name, those that encoder and decoder
share in `stacks`; see :func:`attentest.faults.fault.fault`. They are injected into the models of
`reference_models`. The package `unusual` holds unusual but correct implementations: what the
suite reports on one of them is a false alarm.
"""

from attentest.faults.catalogue import fault_of, faults
from attentest.faults.fault import Fault, fault
from attentest.faults.injection import inject, with_faults

__all__ = ["Fault", "fault", "fault_of", "faults", "inject", "with_faults"]
