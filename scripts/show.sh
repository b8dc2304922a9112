#!/bin/sh
# What `make run` shows: each command, then what it says. Edit the steps as Situ learns to do more.
# Everything happens in a copy of the example project, in a folder that is gone at the end. Spark takes longest to start,
# so it starts first, in the background, and what needs no run is shown meanwhile.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
# The second compiler of Java makes programs fast that run for long. In a show of a minute it costs more than it gains.
JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 ${JDK_JAVA_OPTIONS:-}"
export PATH JDK_JAVA_OPTIONS

patience=${PATIENCE:-1200} # seconds for one thing to happen: enough for a machine that is many times slower than most
scratch=$(mktemp -d)
run=''
clients=''
finish() {
    for process in $clients $run; do kill "$process" 2>/dev/null || true; done
    wait
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

bold='' plain='' clear=''
if [ -t 1 ]; then
    clear=$(printf '\r\033[K')
    if [ -z "${NO_COLOR:-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
fi

say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }

prompt() { printf '%s$ %s%s\n' "$bold" "$*" "$plain"; }

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# show EXIT COMMAND: the command, then what it says. Another exit code than expected ends the show.
show() {
    expected=$1
    shift
    prompt "$*"
    code=0
    sh -c "$*" || code=$?
    if [ "$code" -ne "$expected" ]; then fail "expected exit code $expected, got $code"; fi
}

# beside FILE COMMAND: start the command in another terminal, so to speak.
beside() {
    file=$1
    shift
    "$@" >"$scratch/$file" 2>&1 &
    clients="$clients $!"
}

# said COMMAND FILTER…: a command that ran beside, then what it said, through the filter.
said() {
    prompt "$1"
    shift
    (cd "$scratch" && "$@")
}

# await WHAT COMMAND: until the command succeeds. It waits for what happens, not for the clock: on a slow machine it
# only takes longer. It says what it waits for, on a terminal in one line in place, elsewhere every ten seconds.
await() {
    what=$1
    shift
    began=$(date +%s)
    told=$began
    until "$@" >/dev/null 2>&1; do
        now=$(date +%s)
        if ! kill -0 "$run" 2>/dev/null; then fail "The run ended while this waited for $what: $(cat "$scratch/run")"; fi
        if [ $((now - began)) -ge "$patience" ]; then fail "This waited $patience s for $what."; fi
        if [ -n "$clear" ]; then
            printf '%s… waiting for %s, %s s' "$clear" "$what" $((now - began))
        elif [ $((now - told)) -ge 10 ]; then
            printf '… waiting for %s, %s s\n' "$what" $((now - began))
            told=$now
        fi
        sleep 0.3
    done
    printf '%s' "$clear"
}

spark_runs() { grep -q ': running$' .situ/logs/situ.log; }

both_are_closed() {
    situ situations >"$scratch/situations" && [ "$(grep -c ' closed ' "$scratch/situations")" -eq 2 ]
}

nothing_waits() {
    situ status --json | python -c 'import json, sys; sys.exit(json.load(sys.stdin)["engines"]["spark"]["waiting"] > 0)'
}

say 'A project is a folder of declarations. This one is a building where readers and cameras notice people.'
cd "$scratch"
show 0 'situ init building --example --quiet'
cp -r building mistaken
prompt 'cd building'
cd building

say 'Run it: a bus, a router and Spark. Spark takes a moment to load, so this goes on in the background. Read on meanwhile.'
prompt 'situ run &'
situ run >"$scratch/run" 2>&1 &
run=$!

say 'Is everything declared as it should be?'
show 0 'situ check'

say 'Two mistakes in a copy: a place compared with a time, and a misspelt attribute.'
cd ../mistaken
sed 's/at\.x < 5 m AND at\.y/at.x < 5 s AND att.y/' ../building/clients/people.yaml >clients/people.yaml
show 1 'situ check'
cd ../building

# Subscribers, and two programs that negotiate quality, need no engine yet: the router serves them.
await 'the router' situ quality
beside monitor python programs/monitor.py
beside badge-reader python programs/badge_reader.py --for 3600
badge_reader=$!
beside desk python programs/desk.py
for subscription in us-desk/lobby security/alarms control-room/all aurora/all cleaners/all; do
    client=${subscription%/*}
    beside "$client" situ subscribe --client "$client" --durable "${subscription#*/}" --quiet
done

say 'A reader measures in centimetres from where it hangs, a camera in feet and degrees. Each publishes in its own terms.
# Everybody else gets a person at a point of the building, in metres:'
show 0 'situ explain transform --context cameras --in samples/face.json'

say 'A desk in the United States subscribes in feet and in its own words. Situ turns that into a filter on metres:'
show 0 'situ explain subscription us-desk/lobby'

say 'A guest may be in a restricted room only in company. An expert of the building wrote that down as a policy:'
show 0 'situ explain policy unaccompanied-guest'

say 'Not everybody may see everything. Scopes say who is where, and what passes their boundaries:'
show 0 'situ scopes --dimension tenancy'
show 0 'situ explain visibility --from reader-1/seen --data samples/tag.json --to aurora/all'

await 'Spark' spark_runs
say 'Spark has loaded. Now people walk through the building for twenty seconds, four times as fast as in life. Sensors
# publish what they notice, some of it broken. Two guests go where they should not be alone.'
beside sensors python programs/sensors.py --for 20 --speed 4 --rate 150 --broken 0.003 --situations 2
await 'the sensors to publish everything' grep -q 'events published' "$scratch/sensors"
await 'the end of both situations' grep -q 'All is well again' "$scratch/monitor"
await 'the end of both situations' both_are_closed
for client in desk us-desk security control-room aurora cleaners; do
    await "events for $client" test -s "$scratch/$client"
done

# Ask what needs the run, then stop it. The badge reader would publish for ever, and something would always wait.
ask() {
    file=$1
    shift
    "$@" >"$scratch/$file" 2>&1 || fail "\`$*\` failed: $(tail -n 3 "$scratch/$file")"
}
ask quality situ quality
kill "$badge_reader"
await 'Spark to process everything' nothing_waits
ask dead-letters situ dead-letters list --limit 3 &
dead_letters=$!
ask replay situ replay --engine edge
wait "$dead_letters"
for process in $clients $run; do kill "$process" 2>/dev/null || true; done

say 'What two of them sent, each in its own terms:'
said 'python programs/sensors.py' grep 'TagSeen\|FaceSeen' sensors
say 'The front desk got metres, the desk in the United States feet:'
said 'python programs/desk.py' tail -n 3 desk
said 'situ subscribe --client us-desk --durable lobby' tail -n 3 us-desk
say 'What the policy detected: each situation once, from its opening to its close:'
said 'situ situations' cat situations
say 'What it did about it:'
said 'situ subscribe --client security --durable alarms' cat security
say 'Three more subscribed to everything. The control room sees all of it, a tenant what happens in its own rooms, cleaners
# where somebody is but not who:'
for client in control-room aurora cleaners; do
    said "situ subscribe --client $client --durable all" sh -c "tail -n 2 $client; echo \"… \$(wc -l <$client | tr -d ' ') events\""
done
say 'The monitoring desk states how many badges a minute are enough, more during an alarm. Situ asks the badge reader for them:'
said 'python programs/monitor.py' cat monitor
said 'python programs/badge_reader.py' cat badge-reader
said 'situ quality' cat quality
say 'What was broken:'
said 'situ dead-letters list --limit 3' cat dead-letters
say 'The log once more, through the same subscriptions:'
said 'situ replay --engine edge' cat replay

wait "$run" || fail "The run did not end in order: $(tail -n 5 "$scratch/run")"
say 'What the run in the background counted until it was stopped:'
said 'situ run' sed -n '/^  *events$/,$p' run

say 'Try next, after `. .venv/bin/activate`:
#   situ init mine && cd mine && situ check    a small project of your own
#   situ run --engine edge                     run it in one process, without Spark
#   situ --help                                all commands
#   docs/quickstart.md                         fifteen minutes, from an empty folder to a project that runs
#   examples/                                  seven projects to copy from'
