#!/bin/bash
# kill_campaign.sh ZEROLAB MPIRUN KILLS [SEED]: so many times a random rank of 2 to 4 is killed at a random time of a
# training with checkpoints, which is then resumed, perhaps to be killed again, until it ends: with the losses and the
# bytes of the last checkpoint of a run that nobody disturbed, no file of a killed run left and no process. Says what
# was not so and exits with 1 then. Not part of the suite: sixty kills take ten minutes on two cores.
set -u
zerolab=$1 mpirun=$2 kills=$3 seed=${4:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/nvme"
export HOME=$folder XDG_DATA_HOME=$folder XDG_CONFIG_HOME=$folder OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
strategies=(zero-0 zero-1 zero-2 zero-3 onebit-adam zero-3-offload-nvme)
killed=0 landed=0 rounds=0 wrong=0 left=0

# train NAME RANKS STRATEGY WORDS...: its checkpoints are in NAME.ck.
train() {
  local name=$folder/$1 ranks=$2 strategy=$3
  shift 3
  exec timeout -k 5 600 "$mpirun" -n "$ranks" "$zerolab" run tiny-gpt2 --strategy "$strategy" --nvme-path "$folder/nvme" --steps 24 \
    --backend cpu --communicator mpi --no-db --checkpoint "$name.ck" --checkpoint-every 2 -o json "$@" >"$name.out" 2>"$name.err"
}
losses() { grep -o '"loss": *\[[^]]*\]' "$folder/$1.out" | grep -o '[0-9][0-9.e+-]*'; }
# The bytes of the last step's files.
state() {
  local last
  last=$(find "$folder/$1.ck" -type d -name 'step-*' | sort | tail -n 1)
  (cd "$last" && find . -type f | sort | xargs b2sum)
}
alive() {
  local each
  for each in /proc/[0-9]*; do
    tr '\0' ' ' 2>/dev/null <"$each/cmdline" | grep -q "^$zerolab run .*$folder" && echo "${each#/proc/}"
  done
}
complain() {
  wrong=$((wrong + 1))
  echo "WRONG: $ranks ranks, $strategy, try $tries: $1"
  grep -v '^[-*]' "$folder/run.err" | tail -n 12
}

declare -A took
while [ "$killed" -lt "$kills" ]; do
  rounds=$((rounds + 1)) ranks=$((2 + RANDOM % 3)) strategy=${strategies[RANDOM % ${#strategies[@]}]}
  whole=whole-$ranks-$strategy
  if [ -z "${took[$whole]-}" ]; then
    begin=$(date +%s%3N)
    (train "$whole" "$ranks" "$strategy") || { echo "the undisturbed run fails: $strategy"; cat "$folder/$whole.err"; exit 1; }
    took[$whole]=$(($(date +%s%3N) - begin))
  fi
  rm -rf "$folder"/run.*
  tries=0 again=() status=1
  while [ "$status" -ne 0 ] && [ "$tries" -lt 8 ]; do
    (train run "$ranks" "$strategy" "${again[@]}") &
    job=$!
    if [ "$tries" -lt $((1 + RANDOM % 3)) ]; then
      sleep "$(printf '%d.%03d' $((RANDOM % took[$whole] / 1000)) $((RANDOM % 1000)))"
      victims=($(alive))
      if [ ${#victims[@]} -gt 0 ] && kill -KILL "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null; then
        killed=$((killed + 1))
      fi
    fi
    status=0
    wait $job || status=$?
    [ "$status" -ne 124 ] || complain 'does not end'
    # One that was killed after its last checkpoint ends with 0; nothing is to be refused.
    [ "$status" -ne 3 ] || complain 'is refused'
    [ "$status" -eq 0 ] || landed=$((landed + 1))
    sleep 0.2
    [ -z "$(alive)" ] || complain "processes are left: $(alive)"
    tries=$((tries + 1)) again=(--resume)
    # Before the first checkpoint there may be nothing to resume.
    [ -d "$folder/run.ck/$strategy" ] || again=()
  done
  if [ "$status" -ne 0 ]; then
    complain "ends with $status"
    continue
  fi
  count=$(losses run | wc -l)
  [ "$(losses run)" = "$(losses "$whole" | tail -n "$count")" ] || complain 'other losses'
  [ "$(state run)" = "$(state "$whole")" ] || complain 'other bytes'
  files=$(find "$folder/run.ck" "$folder/nvme" -name '*.tmp*' -o -name 'zerolab-*')
  echo "$killed kills: $ranks ranks, $strategy, $tries runs"
  [ -z "$files" ] || { left=$((left + 1)); echo "LEFT: $strategy: $files"; }
done
echo "$killed kills in $rounds trainings, $landed ended by one: $wrong wrong, $left with files left"
[ $((wrong + left)) -eq 0 ]
