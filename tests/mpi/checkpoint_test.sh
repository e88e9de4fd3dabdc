#!/bin/sh
# checkpoint_test.sh ZEROLAB LAUNCHER...: 3 processes keep a checkpoint together, resume it with the bits of thread
# ranks, and agree on what they cannot resume; rank 0 tells.
set -eu
zerolab=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
study="tiny-gpt2 --strategy zero-2 --backend cpu --no-db -o json"
kept="--communicator mpi --checkpoint $folder/ck --checkpoint-every 2"
fail() {
  echo "$1" >&2
  cat "$folder"/*.out "$folder"/*.err >&2
  exit 1
}
losses() { grep -o '"loss": *\[[^]]*\]' "$folder/$1.out" | grep -o '[0-9][0-9.e-]*'; }

# shellcheck disable=SC2086  # several words
{
  "$zerolab" run $study --ranks 3 --steps 6 >"$folder/threads.out" 2>"$folder/threads.err"
  "$@" "$zerolab" run $study $kept --steps 4 >"$folder/begun.out" 2>"$folder/begun.err"
  step=$folder/ck/zero-2/step-00000004
  mv "$step/rank-1-of-3.safetensors" "$folder/rank-1"
  mv "$step/rank-2-of-3.safetensors" "$step/rank-1-of-3.safetensors"
  mv "$folder/rank-1" "$step/rank-2-of-3.safetensors"
  "$@" "$zerolab" run $study $kept --steps 6 --resume >"$folder/rest.out" 2>"$folder/rest.err"
  code=0
  "$@" "$zerolab" run $study $kept --steps 8 --resume --seed 99 >"$folder/other.out" 2>"$folder/other.err" || code=$?
}
[ "$(grep -c 'step 4 is passed over: .*rank-1-of-3.safetensors: its rank is 2, not 1' "$folder/rest.err")" -eq 1 ] ||
  fail 'exchanged files are told once'
[ "$(losses rest)" = "$(losses threads | tail -n 4)" ] || fail 'four steps with the losses of threads'
[ "$code" -eq 3 ] || fail "another seed ends with $code, not 3"
[ "$(grep -c 'error: .*its seed is [0-9]*, not 99' "$folder/other.err")" -eq 1 ] || fail 'another seed is told once'
