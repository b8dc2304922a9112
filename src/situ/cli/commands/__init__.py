"""One function for each command of `situ`, with its options and its help text; related commands share a module.

A module here imports only `exits`, `groups` and `options` at its top and everything else in the function that needs it,
so that help and completion stay fast. Commands compute nothing themselves: they ask `explain`, `project`, `app` or the
registry and hand the answer to `render`. Nobody but `situ.cli.app` imports from here.

Front door: the functions that `situ.cli.app.COMMANDS` names.
"""
