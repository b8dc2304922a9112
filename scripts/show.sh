#!/bin/sh
# What `make run` shows: each command, then what it says. Edit the list at the end as Situ learns to do more.
set -eu
cd "$(dirname "$0")/.."

show() {
    printf '\n$ situ %s\n' "$*"
    .venv/bin/situ "$@"
}

show check --project examples/smart-building
show explain types --project examples/smart-building
