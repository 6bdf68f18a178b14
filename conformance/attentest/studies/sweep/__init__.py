"""Sweeps: a grid of small trainings over design choices, sizes, tasks and seeds.

A :class:`~attentest.studies.sweep.grid.Grid` is expanded into plans, one for each training. Each
finished training is a record in a folder, found again by what it depends on; an interrupted sweep
goes on with those that are missing. The effects of choices are differences between trainings that
agree in everything else.
"""
