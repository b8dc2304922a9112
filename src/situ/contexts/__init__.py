"""Interpretation contexts: what the words and values of an event mean to whom.

It owns how contexts are written (YAML, XML, Python), how they are read and checked, which rule counts at which place,
and how a context may change while clients use it. `load` gives all contexts of a project, `table.Contexts` holds them,
`check` says what is wrong with them. It knows types, units and expressions (`situ.lang`) and declared tables
(`situ.sources`). It must not know clients, subscriptions, policies, scopes, the bus or an engine: rows of tables and
results of Python come from functions that the host passes in.

Front door: model (Context, Rule, Pattern, Conversion, Direction, ROOT, former_root), load (load_contexts,
contexts_from_json), table (Contexts, conversions_of, as_file), check (check_contexts), declarations (declare_contexts,
id_fault), decorators (context, maps_to, transform_with, conv_function, Unit, Typed), python_files (read_code,
with_code, code_digest), compatibility (settle_changes, ChangeOptions, ContextChange), versions (parents_first,
descends, with_contexts), xml_form (parse_context_xml, check_references, as_yaml).
"""
