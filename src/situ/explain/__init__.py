"""Every explanation as data: what is declared, what becomes of an event, why a rule, a policy, a subscription or a
scope did what it did.

Each result is a `situ.lang.json_form.Explanation`: a struct whose fields are its JSON form. The terminal, HTTP and
editors show the same data. It may read the bus, the registry and tables and never changes them, with one exception:
`dead_letters` publishes again. It knows nothing of terminals, exit codes and options.

Front door: `types.explain_type`, `functions.explain_functions`, `expression.explain_subject`,
`context.explain_context`, `transform.explain_transform`, `event.explain_event`, `subscription.explain_subscription`,
`policy.explain_policy`, `detection`, `match_report`, `visibility`.
"""
