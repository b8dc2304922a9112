# Waiting for what happens, for scripts that do something beside a run. To be sourced, in a shell with $missing and $ended:
# files that say what never came, and that the run is over; and with stop_run, which ends it.

patience=${PATIENCE:-1200} # seconds for one thing to happen: enough for a machine that is many times slower than most

# await WHAT COMMAND: until the command succeeds. Whoever waits in vain says what for, and ends the run.
await() {
    what=$1
    shift
    began=$(date +%s)
    until "$@" >/dev/null 2>&1; do
        if [ -e "$ended" ]; then give_up "The run ended while this waited for $what."; fi
        if [ $(($(date +%s) - began)) -ge "$patience" ]; then give_up "This waited $patience s for $what."; fi
        sleep 0.5
    done
}

give_up() {
    printf '%s\n' "$*" >"$missing"
    stop_run
    exit 1
}

# say_missing: end with what was missing, if anything was.
say_missing() {
    if [ -e "$missing" ]; then
        cat "$missing" >&2
        exit 1
    fi
}
