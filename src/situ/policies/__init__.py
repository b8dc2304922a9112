"""Situations: what a policy says, whether it can be met, how it is detected, and what becomes of its detections.

It owns the ontology, the policy language, the check of policies, the plan, enrichment, the kernel, the watermark, the
life cycle of situations and declared actions. Values in, values out: no clock, no input or output, no Spark. It must
not know the deployment snapshot, the bus, the engines, or the other parts (contexts, scopes, quality, routing). `model`
(a checked policy, observations, detections) and `plan` are what everything else starts from. `reference` is the slow
definition that the kernel must equal; policy tests and explanations run it.

Front door: `model` (Policy, Alias, Relation, Observation, Detection, Cause, PolicyStart), `load` (load_policies,
policies_as_json, policies_from_json, LoadedPolicies, StoppedPolicy), `plan` (plan_policy, PolicyPlan, Leaf, leaves_of),
`source_coverage` (check_sources, cover_attributes, attributes_needed, provided_attributes), `lifecycle` (step, close,
carry_over, OpenSituation, SituationTransition, situation_data, situation_sentence), `watermark` (watermark, waits_for,
SourceTimes), `reference` (detect, OccurrenceSet), `policy_tests` (PolicyTest, load_policy_test, compare), `logic_tree`
(logic_tree, literal_text, clause_text, duration_text).
"""
