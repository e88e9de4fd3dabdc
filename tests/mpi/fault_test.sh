#!/bin/sh
# fault_test.sh SIGNAL FAULT LAUNCHER... RANKS: so many ranks train, and one of them stops (STOP) or is killed (KILL)
# in each phase of a step, before MPI begins and after the run. The others end by themselves and name it; where it was
# killed the launcher ends them, long before they would lose their patience, and may name it: Open MPI 4 mostly does. How
# long that took at most is printed: below two seconds on a machine with nothing else to do. The ranks take turns;
# ZL_TEST_EVERY_RANK=1: each of them in each phase.
# ZL_TEST_MESH=mesh: four ranks, as tensor groups of two in a pipeline of two; there the first whose time is up may
# wait for one that waits for the stopped one, which is named when it does not end.
set -eu
signal=$1 fault=$2
shift 2
for count; do :; done  # the last word
errors=$(mktemp)
export ZL_TEST_FAULT_TIME="$errors.time"  # a file: what a killed rank prints may be lost with it
trap 'rm -f "$errors" "$ZL_TEST_FAULT_TIME"' EXIT
fail() {
  echo "$signal of rank $rank in $phase: $1" >&2
  cat "$errors" >&2
  exit 1
}

ZL_TEST_MESH=${ZL_TEST_MESH:-} patience=${ZL_TEST_MESH:+6000}
patience=${patience:-3000} entered='' turn=$((count - 1)) slowest=0
[ "$signal" = STOP ] || patience=30000
for phase in start forward backward recompute reduce optimizer gather end finalize; do
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
    took=$((ended - $(cat "$ZL_TEST_FAULT_TIME")))
    [ "$took" -le "$slowest" ] || slowest=$took
    if [ "$signal" = KILL ]; then
      [ "$took" -lt $((patience / 2)) ] || fail "the others end after $took ms"
    fi
    if [ "$signal" = STOP ]; then
      case $phase in
        start) said="MPI_Init_thread: not all .* within $patience ms (rank $rank has not come): ending this one" ;;
        finalize) said="MPI_Finalize: not all .* within $patience ms (rank $rank has not come): ending this one" ;;
        end) said="has ended, but rank $rank not within $patience ms" ;;
        *) said="timed out after $patience ms: .*; not \(there\|sent by\|taken by\|done by\): rank [0-9, ]*$rank\|rank $rank has not ended since" ;;
      esac
      grep -q "$said" "$errors" || fail "not named"
      ! grep -q 'rank [0-9]*, .*has not come' "$errors" || fail 'a rank is named that has come'
    fi
    entered="$entered $phase"
  done
done
for phase in start forward backward recompute reduce optimizer gather end finalize; do
  case $entered in *$phase*) ;; *) fail 'no rank has entered it' ;; esac
done
echo "the others have ended within $slowest ms"
