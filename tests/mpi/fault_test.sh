#!/bin/sh
# fault_test.sh SIGNAL FAULT LAUNCHER... RANKS: so many ranks train, and one of them stops (STOP) or is killed (KILL)
# in each phase of a step, before MPI begins and after the run. The others end by themselves and name it; where it was
# killed the launcher ends them, within two seconds, and may name it: Open MPI 4 mostly does. The ranks take turns; ZL_TEST_EVERY_RANK=1: each of them in each phase.
# ZL_TEST_MESH=mesh: four ranks, as tensor groups of two in a pipeline of two; there the first whose time is up may
# wait for one that waits for the stopped one, which is named when it does not end.
set -eu
signal=$1 fault=$2
shift 2
for count; do :; done  # the last word
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
fail() {
  echo "$signal of rank $rank in $phase: $1" >&2
  cat "$errors" >&2
  exit 1
}

ZL_TEST_MESH=${ZL_TEST_MESH:-} patience=${ZL_TEST_MESH:+6000}
patience=${patience:-3000} entered='' turn=$((count - 1))
for phase in start forward backward recompute reduce optimizer gather end; do
  turn=$(((turn + 1) % count))
  ranks=$turn
  [ -z "${ZL_TEST_EVERY_RANK:-}" ] || ranks=$(seq 0 $((count - 1)))
  for rank in $ranks; do
    status=0
    timeout -k 5 60 "$@" "$fault" "$rank" "$phase" "$signal" "$patience" $ZL_TEST_MESH 2>"$errors" >&2 || status=$?
    ended=$(date +%s%3N)
    [ "$status" -ne 77 ] || continue  # the strategy has no such phase
    [ "$status" -ne 0 ] || fail 'the others end well'
    [ "$status" -ne 124 ] || fail 'they do not end'
    at=$(sed -n 's/.*fault at //p' "$errors")
    if [ "$signal" = KILL ]; then
      [ "$((ended - at))" -lt 2000 ] || fail "the others end after $((ended - at)) ms"
    fi
    if [ "$signal" = STOP ]; then
      case $phase in
        start) said="MPI_Init_thread: not all processes of the job have joined it within $patience ms" ;;
        end) said="has ended, but rank $rank not within $patience ms" ;;
        *) said="timed out after $patience ms: .*; not \(there\|sent by\|taken by\|done by\): rank [0-9, ]*$rank\|rank $rank has not ended since" ;;
      esac
      grep -q "$said" "$errors" || fail "not named"
    fi
    entered="$entered $phase"
  done
done
for phase in start forward backward recompute reduce optimizer gather end; do
  case $entered in *$phase*) ;; *) fail 'no rank has entered it' ;; esac
done
