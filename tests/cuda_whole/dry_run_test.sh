#!/usr/bin/env bash
# The acceptance run over the fakes: every part passes (or says why it is skipped), every JSON names the
# device as a dry run, and no figure can land among measurements. usage: dry_run_test.sh ACCEPTANCE PROGRAMS
set -uo pipefail
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
fail() { echo "$1"; cat "$out/lines"; exit 1; }

"$1" --programs "$2" --no-pytorch --nvme-path "$out" --limit 400 --out "$out/json" >"$out/lines"
status=$?
[ "$status" -eq 0 ] || { tail -n 5 "$out"/json/*.log; fail "exit code $status"; }
[ "$(grep -c '^[a-fh] [a-z]*  *PASS  ' "$out/lines")" -eq 7 ] || fail 'not seven parts that pass'
grep -q '^g sanitizer  *SKIP  ' "$out/lines" || fail 'part g is not skipped'
for file in "$out"/json/[a-fh]-*.json; do
  grep -q '"name": "dry run (no GPU)"' "$file" || fail "$file does not name the device a dry run"
  grep -q '"tiny": "toy sizes' "$file" || fail "$file does not say that its sizes are toys"
done
grep -q '"route": "host_to_file"' "$out/json/f-calibration.json" || fail 'part f measures no files'
for place in results/measured/x "$out/results/measured"; do
  "$1" a --programs "$2" --out "$place" >"$out/lines" 2>&1 && fail "results in $place"
  grep -q 'is for measurements' "$out/lines" || fail "another reason than the folder $place"
done
echo 'seven parts passed, one skipped'
