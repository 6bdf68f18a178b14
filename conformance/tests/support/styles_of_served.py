"""A specimen as a backend, for a program to serve."""

from attentest.specimens import Plain, specimen_backend

backend = specimen_backend(Plain, name="served")
