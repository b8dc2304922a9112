#!/bin/sh
# What `make run` shows: each command, then what it says. Edit the steps as Situ learns to do more.
# Everything happens in a copy of the example project, in a folder that is gone at the end.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
export PATH

scratch=$(mktemp -d)
missing=$scratch/missing
ended=$scratch/ended
started=''
finish() {
    for process in $started; do kill "$process" 2>/dev/null || true; done
    wait
    rm -rf "$scratch"
}
trap finish EXIT
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

. scripts/await.sh

runs() { grep -q 'situ.host: running' .situ/logs/situ.log; }

# beside FILE COMMAND: the command in another terminal, so to speak, as soon as the project runs.
beside() {
    file=$1
    shift
    (
        until runs 2>/dev/null; do sleep 0.2; done
        exec "$@" >"$scratch/$file" 2>&1
    ) &
    started="$started $!"
}

# ask FILE COMMAND: what a command says while the project runs.
ask() {
    file=$1
    shift
    "$@" >"$scratch/$file" 2>&1 || give_up "\`$*\` failed: $(tail -3 "$scratch/$file")"
}

# direct: when everything has happened that is shown below, look at what is there, then stop the run. It waits for
# what happens, not for the clock: on a slow machine it only takes longer.
direct() {
    await 'the run to be up' runs
    await 'the sensors to have published everything' grep -q 'events published' "$scratch/sensors"
    await 'Spark to have taken everything' nothing_waits
    await 'both situations to be closed' both_are_closed
    await 'the badge reader to be told that it may rest' grep -q 'may rest' "$scratch/badge-reader"
    for who in desk us alarms control-room aurora cleaners; do
        await "events for $who" test -s "$scratch/$who"
    done
    ask quality situ quality
    ask situations situ situations
    ask letters situ dead-letters list --limit 3
    ask replay situ replay --engine edge
    stop_run
}

stop_run() {
    pid=$(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' .situ/lock 2>/dev/null) && [ -n "$pid" ] && kill "$pid" 2>/dev/null || true
}

both_are_closed() {
    situ situations --json |
        python -c 'import json, sys; sys.exit(sum(bool(each["end"]) for each in json.load(sys.stdin)) < 2)'
}

nothing_waits() {
    situ status --json | python -c 'import json, sys; sys.exit(json.load(sys.stdin)["engines"]["spark"]["waiting"] > 0)'
}

say 'A project is a folder of declarations. Is everything declared as it should be?'
cd "$scratch"
show 0 'situ init building --example --quiet'
printf '%s$ cd building%s\n' "$bold" "$plain"
cd building
show 0 'situ check'

say 'Two mistakes: a place compared with a time, and an attribute with a slip.'
cp clients/people.yaml "$scratch"
sed 's/at\.x < 5 m AND at\.y/at.x < 5 s AND att.y/' "$scratch/people.yaml" >clients/people.yaml
show 1 'situ check'
cp "$scratch/people.yaml" clients

say 'Readers see tags so many centimetres ahead, cameras see faces so many feet away, at an angle. Each says so in its own
# terms. Everybody else hears of a person at a point of the building, in metres:'
show 0 'situ explain transform --context cameras --in samples/face.json'

say 'A desk in the United States asks in feet, and in its own words. What does that ask of the events of the building?'
show 0 'situ explain subscription us-desk/lobby'

say 'A guest may be in a restricted room only in company. An expert of the building wrote that down as a policy:'
show 0 'situ explain policy unaccompanied-guest'

say 'Not everybody may see everything. Scopes say who is where, and what passes their boundaries:'
show 0 'situ scopes --dimension tenancy'
show 0 'situ explain visibility --from reader-1/seen --data samples/tag.json --to aurora/all'

say 'Now it runs: a bus, a router and Spark, which takes a moment to load. Then people walk through the building for a
# while, sensors publish what they notice, some of it broken, and both desks read along. Two guests go astray. Meanwhile a
# monitoring desk and a badge reader negotiate how much is enough.'
beside sensors python programs/sensors.py --for 20 --speed 3 --rate 250 --broken 0.003 --situations 2
beside badge-reader python programs/badge_reader.py --for 3600 --speed 6
beside monitor python programs/monitor.py
beside desk python programs/desk.py
beside us situ subscribe --client us-desk --durable lobby --quiet
beside alarms situ subscribe --client security --durable alarms --quiet
beside control-room situ subscribe --client control-room --durable all --quiet
beside aurora situ subscribe --client aurora --durable all --quiet
beside cleaners situ subscribe --client cleaners --durable all --quiet
direct &
director=$!
started="$started $director"
show 0 'situ run'
touch "$ended"
wait "$director" || true
say_missing

say 'Two dialects in, as sensors sent them (`python programs/sensors.py`):'
show 0 "grep 'TagSeen\\|FaceSeen' '$scratch/sensors'"
say 'and two out. The front desk hears metres (`python programs/desk.py`), the one in the United States feet
# (`situ subscribe --client us-desk --durable lobby`):'
show 0 "tail -3 '$scratch/desk'; tail -3 '$scratch/us'"
say 'What the policy detected, each situation once however long it lasts (`situ situations`):'
show 0 "cat '$scratch/situations'"
say 'and what it did about it (`situ subscribe --client security --durable alarms`):'
show 0 "cat '$scratch/alarms'"
say 'Three more asked for all that happens. Security sees everything, a tenant its own rooms, cleaners where somebody is
# and not who (`situ subscribe --client cleaners --durable all`):'
show 0 "cd '$scratch'; for who in control-room aurora cleaners; do echo \"\$(wc -l <\$who) events for \$who, such as\"; tail -3 \$who; done"
say 'The monitoring desk says what is good enough, more while a guest is alone where he should not be, and hears what is
# made of it (`python programs/monitor.py`):'
show 0 "cat '$scratch/monitor'"
say 'The badge reader hears what it is asked to do, and that it may rest when nobody needs it any more
# (`python programs/badge_reader.py`):'
show 0 "cat '$scratch/badge-reader'"
say 'Who expects what, who can do what, and what holds (`situ quality`):'
show 0 "cat '$scratch/quality'"
say 'What was broken, while it ran (`situ dead-letters list`):'
show 0 "cat '$scratch/letters'"
say 'The log once more, through the same subscriptions (`situ replay`):'
show 0 "cat '$scratch/replay'"

say 'Next: `situ --help`, or a project of your own with `situ init`.'
