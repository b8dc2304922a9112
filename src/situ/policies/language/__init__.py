"""The language of policies: text to tree, tree to canonical text, and what to say about mistakes.

`statements` splits a file into sections and statements, `parse` reads each with lark, `syntax` is the tree, `print` and
`format` write it. `syntax_errors` and `mistakes` turn a refused statement into one problem with a hint. It must not
know what names mean: no ontology, no sources, no actions. `grammar_table` is generated from `grammar.lark` by
`scripts/generate_grammar.py`.

Front door: `parse` (parse_policy, parse_condition), `syntax` (PolicyText, ActionText, ConsumptionMode, When), `print`
(print_policy, print_condition), `format` (format_policy).
"""
