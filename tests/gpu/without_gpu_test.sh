#!/usr/bin/env bash
# The acceptance run where CUDA sees no device: every part is skipped with its reason, in a line and in
# a well-formed JSON, and the exit code is 5. usage: without_gpu_test.sh ACCEPTANCE PROGRAMS
set -uo pipefail
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
fail() { echo "$1"; cat "$out/lines"; exit 1; }

CUDA_VISIBLE_DEVICES='' "$1" --programs "$2" --out "$out/json" >"$out/lines"
status=$?
[ "$status" -eq 5 ] || fail "exit code $status instead of 5"
[ "$(grep -c 'SKIP  no usable GPU: ..*' "$out/lines")" -eq 8 ] || fail 'not eight skipped parts with a reason'
files=("$out"/json/*.json)
[ ${#files[@]} -eq 8 ] || fail "${#files[@]} JSON files instead of 8"
for file in "${files[@]}"; do
  grep -q '"outcome": *"skipped"' "$file" && grep -q '"reason": *"no usable GPU' "$file" || fail "$file says something else"
  if command -v python3 >/dev/null; then
    python3 -m json.tool "$file" >/dev/null || fail "$file is not JSON"
  fi
done
echo 'eight parts skipped'
