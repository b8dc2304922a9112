"""Policy text to a checked policy, or everything that is wrong with it.

`domain` is what names are looked up in, `relations` resolves single conditions, `normal_form` turns them into clauses,
`satisfiability` finds what no values or times can meet, `policy` does the whole. `interactions` holds policies against
each other: opposed actions, trigger cycles, delays of chains, similar policies. It must not know how policies are
detected.

Front door: `policy` (check_policy), `domain` (Domain), `interactions` (check_interactions, trigger_graph,
feeding_graph, chain_delays, trigger_cycles).
"""
