"""Actions: what a project declares, what a policy asks for, and what that comes to for one detection.

`model` and `data` hold what is declared, `templates` the texts with references, `load` reads `actions.yaml`, `resolve`
finds the action that the words of a policy name, `invocations` makes plain data with an idempotency key. Nothing is
performed here: queues, HTTP and retries belong to `situ.app`.

Front door: `load` (load_actions, actions_as_json, actions_from_json), `model` (DeclaredActions,
NamedAction, ActionStep, VERBS), `resolve` (resolve_action, steps_of, BoundAliases), `invocations` (ActionInvocation,
invocation_of), `templates` (TemplateFacts, parse_template, render_template).
"""
