"""Which publishers are adapted, to what, for whom: from an `AllocationProblem` to an `AllocationPlan`.

`sequential` decides one expectation after the other (strategy `pareto`); `search_space`, `exact` and `local_search`
solve independent components as a whole (`cheapest`, `utility`, `fairness`). `strategies` has them by name. No state is
kept between two problems, and nothing here knows advice or clients.

Front door: strategies (BUILT_IN_STRATEGIES), sequential (decide_pareto), candidates (PartialPlan).
"""
