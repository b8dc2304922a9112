"""The terminal.

It owns arguments, options, exit codes, output streams, progress and Ctrl-C, and which project, run and registry a
command works on. It is the only place where a problem becomes an exit code. `situ --help` loads nothing but this
folder: commands are loaded by name when they are asked for. It decides nothing about the meaning of declarations.

Front door: `main.main`, `app.run`, `app.COMMANDS`, `exits.Exit`, `exits.CommandError`, `options`, `output.Output`,
`project.open_project`, `project.find_run`, `registry.registry_of`.
"""
