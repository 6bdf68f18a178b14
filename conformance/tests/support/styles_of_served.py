"""A specimen as a backend, for a program to serve."""

from attentest.faults.reference_models import Plain, reference_backend

backend = reference_backend(Plain, name="served")
