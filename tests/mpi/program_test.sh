#!/bin/sh
# program_test.sh ZEROLAB LAUNCHER...: started by an MPI launcher with 3 processes, the program gives the losses of its
# thread ranks, speaks once and stores once; a failure is told once.
set -eu
zerolab=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
study="tiny-gpt2 --strategy zero-0,zero-3-offload-nvme --nvme-path $folder --steps 4 --backend cpu -o json"
fail() {
  echo "$1" >&2
  cat "$folder"/*.out "$folder"/*.err >&2
  exit 1
}

# shellcheck disable=SC2086  # several words
{
  "$zerolab" run $study --ranks 3 --db "$folder/runs.db" >"$folder/threads.out" 2>"$folder/threads.err"
  "$@" "$zerolab" run $study --communicator mpi --db "$folder/runs.db" >"$folder/mpi.out" 2>"$folder/mpi.err"
  "$zerolab" run $study --ranks 3 --db "$folder/runs.db" >"$folder/again.out" 2>"$folder/again.err"
  "$@" "$zerolab" run $study --communicator mpi --no-db --device-memory 64KiB >"$folder/small.out" 2>"$folder/small.err" &&
    fail 'a run without memory ends well'
}
losses() { grep -o '"loss": *\[[^]]*\]' "$folder/$1.out"; }
[ "$(losses threads | wc -l)" -eq 2 ] || fail 'two strategies, two lists of losses'
[ "$(losses threads)" = "$(losses mpi)" ] || fail 'losses of processes are those of threads'
grep -q '"run_id": *[34]' "$folder/mpi.out" || fail 'rank 0 stores'
grep -q '"run_id": *5' "$folder/again.out" || fail 'only rank 0 stores'
grep -q '"link": *"mpi"' "$folder/mpi.out" || fail 'the link is named'
[ "$(grep -c 'zero-0 on cpu: does not fit' "$folder/small.err")" -eq 1 ] || fail 'told once'
[ -z "$(find "$folder" -name 'zerolab-*')" ] || fail 'files are left behind'
