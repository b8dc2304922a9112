"""Who may see an event: scopes in several dimensions, filters at their boundaries, rights, and how all that changes
while events flow.

A scope graph is compiled to a plan over pairs of tag sets; an event carries a stamp of filter bits; both the epoch of
the stamp and the one in force must agree. It knows expressions and types, not subscriptions, policies or engines; no
I/O. The tag sets themselves are `situ.lang.tags`, as every document names scopes.

Front door: graph (ScopeGraph, Dimension, Scope, BoundaryFilter), load_scopes, filters (FilterMeanings, check_filters),
rights (Principal, may, check_tags), operations, change (change), diff (diff_scopes, merge_scopes), visibility_plan
(compile_visibility, VisibilityPlan, TagSetPair, sees_as_much), epochs (Epochs), explanation (explain_visibility).
"""
