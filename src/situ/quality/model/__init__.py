"""What is declared about quality, as plain data: properties, needs, expectations, capability profiles, costs, actions,
strategies, and the shape of a subscription's stream.

Also the allocation problem with its targets, plans and operating costs, because matching and allocation both speak of
it. JSON forms stand beside the data and are stored in deployments: equal values give equal JSON. It knows no algorithm;
`Problem` names the match index as a type only.

Front door: declarations (QualityProperty, Need, Expectation, Capability, Mode, Profile, Strategy, Quality,
QualityEnvironment), costs, shapes (Shape, Thin, Suppress, EventFloor, shape_as_json), json_form (quality_as_json,
quality_from_json), allocation_problem (AllocationProblem, AllocationPlan, Target, Decide: what strategy plug-ins are
written against).
"""
