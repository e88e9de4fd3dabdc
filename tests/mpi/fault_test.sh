#!/bin/sh
# fault_test.sh SIGNAL FAULT LAUNCHER... RANKS: so many ranks train, and one of them stops (STOP) or is killed (KILL)
# in each phase of a step, before MPI begins and after the run. The others end by themselves and name it. The ranks
# take turns; ZL_TEST_EVERY_RANK=1: each of them in each phase.
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

entered='' turn=$((count - 1))
for phase in start forward backward recompute reduce optimizer gather end; do
  turn=$(((turn + 1) % count))
  ranks=$turn
  [ -z "${ZL_TEST_EVERY_RANK:-}" ] || ranks=$(seq 0 $((count - 1)))
  for rank in $ranks; do
    status=0
    timeout -k 5 60 "$@" "$fault" "$rank" "$phase" "$signal" 3000 2>"$errors" >&2 || status=$?
    [ "$status" -ne 77 ] || continue  # the strategy has no such phase
    [ "$status" -ne 0 ] || fail 'the others end well'
    [ "$status" -ne 124 ] || fail 'they do not end'
    if [ "$signal" = STOP ]; then
      case $phase in
        start) said='MPI_Init_thread: not all processes of the job have joined it within 3000 ms' ;;
        end) said="has ended, but rank $rank not within 3000 ms" ;;
        *) said="timed out after 3000 ms: .*; not \(there\|sent by\|taken by\): rank [0-9, ]*$rank" ;;
      esac
      grep -q "$said" "$errors" || fail "not named"
    fi
    entered="$entered $phase"
  done
done
for phase in start forward backward recompute reduce optimizer gather end; do
  case $entered in *$phase*) ;; *) fail 'no rank has entered it' ;; esac
done
