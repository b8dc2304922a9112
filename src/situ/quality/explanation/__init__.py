"""Why an expectation is satisfied or not, what would change that, and what is claimed of a publisher: as data, as
JSON, and in words.

It reads the state of a negotiator and changes nothing. It stands below `situ.explain` because routers answer clients
with it.

Front door: explain (explain_expectation, explain_publisher), model (ExpectationExplanation, ProfileExplanation), text
(as_text, publisher_as_text).
"""
