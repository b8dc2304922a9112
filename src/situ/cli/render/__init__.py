"""Answers as text for people: rich tables, trees, SVG drawings and the live view of a run.

Every function takes data and gives what is printed; nothing is looked up or decided here. JSON output does not come
through here: data has `as_json`. `render.text`, `render.run` and `render.status` import no declarations, so `situ
status` stays fast; do not join them with others.

Front door: `text.show_problems`, `text.plural`, `types.table`, `run.live_view`, `status.show_status`,
`check.show_check`, `registry.show_difference`, `transform`, `policy`, `event`.
"""
