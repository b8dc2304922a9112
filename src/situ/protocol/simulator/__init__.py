"""Routers, clients and stores of several zones in virtual time, with faults, and what must hold at every step.

It owns scenarios and what becomes of them: runs, checks, short stories of runs that fail, diagrams. Chance comes from a
seed, so a run can be repeated anywhere. It must not know what a router decides: that is all in
:mod:`situ.protocol.overlay`.

Front door: scenario (Scenario, read_scenario, declared_world), random_scenario, simulation (Simulation, Outcome), story
(shrink, tell_story), diagram (draw).
"""
