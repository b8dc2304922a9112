#!/bin/sh
# What `make run` shows: each command, then what it says. Edit the steps as Situ learns to do more.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
export PATH

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold='' plain=''; fi

say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }

# show EXIT COMMAND: the command, then what it says. Another exit code than expected ends the show with it.
show() {
    expected=$1
    shift
    printf '%s$ %s%s\n' "$bold" "$*" "$plain"
    code=0
    sh -c "$*" || code=$?
    if [ "$code" -ne "$expected" ]; then
        printf 'expected exit code %s, got %s\n' "$expected" "$code" >&2
        exit 1
    fi
}

say 'A project is a folder of declarations. Is everything declared as it should be?'
printf '%s$ cd examples/smart-building%s\n' "$bold" "$plain"
cd examples/smart-building
building=$PWD
show 0 'situ check'

say 'What can be published in it?'
show 0 'situ explain types'
say 'One of these types, with what it has from its supertype:'
show 0 'situ explain types Alarm'

say 'People walk through the building, sensors report: one second of it.'
show 0 'python -m situ.testing.building --for 1s --rate 12 --paced --types TagSeen FaceSeen DoorUsed Sighting'

say 'The front desk asks for arrivals. What does its filter mean, and does it match this event?'
python -m situ.testing.building --for 1s --types Sighting | sed -n 2p >"$scratch/sighting.json"
cd "$scratch"
ln -s "$building" smart-building
show 0 'cat sighting.json'
show 0 'situ explain expression desk/arrivals --project smart-building --event sighting.json'

say 'A camera measures in feet, security asks in metres: the filter is converted once, not every event.'
show 0 'situ explain expression security/faces-close --project smart-building'

say 'Two mistakes in a copy of the project: a place compared with a time, and an attribute with a slip.'
show 0 'situ init copy --example --quiet'
sed 's/at\.x < 5 m AND at\.y/at.x < 5 s AND att.y/' smart-building/clients/people.yaml >copy/clients/people.yaml
show 1 'situ check --project copy'

say 'Mended, and with a wider lobby: what would change?'
sed 's/at\.x < 5 m/at.x < 8 m/' smart-building/clients/people.yaml >copy/clients/people.yaml
show 1 'situ diff --project copy --against smart-building'

say 'Next: `situ --help`, or a project of your own with `situ init`.'
