#!/usr/bin/env bash
# The acceptance run over the fakes: every part passes (or says why it is skipped), every JSON names the
# device as a dry run, and no figure can land among measurements. usage: dry_run_test.sh ACCEPTANCE PROGRAMS
set -uo pipefail
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
fail() { echo "$1"; cat "$out/lines"; exit 1; }

export ZL_TEST_ROUNDS=1  # of part a, whose table the other tests of CudaWhole go through
"$1" --programs "$2" --no-pytorch --nvme-path "$out" --limit 900 --out "$out/json" >"$out/lines"
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

# Tests that take too long end before they are killed, with figures.
"$2/gpu_acceptance" conformance --budget 0.001 --out "$out/json/late.json" >"$out/lines" 2>&1 && fail 'late tests pass'
grep -q '^failure: time is up: [1-9][0-9]* of [0-9]* tests ran' "$out/lines" || fail 'not one test before the time was up'
grep -q '"tests": [1-9]' "$out/json/late.json" || fail 'late tests leave no JSON'

# A stand-in for PyTorch: it answers, or ends while it loads a model; zerolab's own figures stay.
cat >"$out/python" <<'EOT'
#!/usr/bin/env bash
[ "$1" != -c ] || exit 0
while read -r question; do
  case "$question" in
    *'"load"'*) [ ! -e "${0%/*}/no_load" ] || exit 3; echo '{"ok":true}' ;;
    *'"steps"'*) echo '{"ok":true,"times":[60,90,120]}' ;;
    *) echo '{"ok":true}' ;;
  esac
done
EOT
chmod +x "$out/python"
figures=$out/pair/d-throughput.json
"$1" d --programs "$2" --python "$out/python" --quick --out "$out/pair" >"$out/lines" 2>&1 || fail "exit code $?"
grep -q '^d throughput  *PASS  .*x torch' "$out/lines" || fail 'no ratio to PyTorch'
grep -q '"median_step_seconds": 90' "$figures" || fail "not PyTorch's median"
touch "$out/no_load"
"$1" d --programs "$2" --python "$out/python" --quick --out "$out/pair" >"$out/lines" 2>&1 && fail 'a PyTorch that ends passes'
grep -q '^d throughput  *FAIL  .* tok/s.*no pair .*ended with status 3' "$out/lines" || fail 'why there is no pair is not said'
grep -q '"median_step_seconds"' "$figures" || fail "zerolab's figures are lost with PyTorch's"
echo 'seven parts passed, one skipped; with a stand-in for PyTorch too'
