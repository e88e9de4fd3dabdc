#!/bin/sh
# differ_test.sh ZEROLAB LAUNCH_ONE...: two ranks that were not started alike (LAUNCH_ONE starts one process) train
# nothing, store nothing, and say what differs; so does one that cannot read its data.
set -eu
zerolab=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
XDG_DATA_HOME=$folder XDG_CONFIG_HOME=$folder
export XDG_DATA_HOME XDG_CONFIG_HOME
yes 'In the beginning was the word.' | head -n 500 >one.txt
yes 'In the beginning was the work.' | head -n 500 >two.txt
base='--backend cpu --communicator mpi --collective-timeout 10 -o csv'
fail() {
  echo "$1: $2 (status $status)" >&2
  cat out err >&2
  exit 1
}

# both COMMAND FIRST SECOND: rank 0 with the words of FIRST, rank 1 with those of SECOND.
both() {
  status=0
  # shellcheck disable=SC2086  # several words
  timeout -k 5 60 "$@" >out 2>err || status=$?
}
# differ KEY COMMAND FIRST SECOND: exit 3, the key with both ranks told once, nothing stored.
differ() {
  rm -rf store.db ck*
  # shellcheck disable=SC2086
  both $launch "$zerolab" $2 $base --db store.db $3 : $launch_again "$zerolab" $2 $base --db store.db $4
  [ "$status" -eq 3 ] || fail "$1" 'exit code'
  [ "$(grep -c "zerolab: error: .*the ranks do not run the same.*$1[a-z0-9_.-]*: rank 0 has .*, rank 1 has " err)" -eq 1 ] ||
    fail "$1" 'told once, by key, rank and value'
  [ ! -s out ] || fail "$1" 'no result'
  ! ls ck*/*/step-* >/dev/null 2>&1 || fail "$1" 'nothing kept'
}

launch="$*"
shift  # the launcher's name stands once
launch_again="$*"
gpt='run tiny-gpt2 --strategy zero-1 --steps 3' train='train tiny-gpt2 --strategy zero-1 --steps 3'
differ run.seed "$gpt" '--seed 1' '--seed 2'
differ run.data "$gpt" '--data one.txt' '--data synthetic'
differ run.data "$gpt" '--data one.txt' '--data two.txt'
differ run.steps 'run tiny-gpt2 --strategy zero-1' '--steps 3' '--steps 4'
differ run.sequence_length "$gpt" '' '--sequence-length 32'
differ run.device_memory "$gpt" '' '--device-memory 1GiB'
differ train_micro_batch_size_per_gpu "$gpt" '--micro-batch 1' '--micro-batch 2'
differ gradient_accumulation_steps "$gpt" '--gradient-accumulation 1' '--gradient-accumulation 2'
differ strategies.0.zero_optimization.stage 'run tiny-gpt2 --steps 3' '--strategy zero-1' '--strategy zero-2'
differ strategies.1 'run tiny-gpt2 --steps 3' '--strategy zero-1,zero-2' '--strategy zero-1'
differ enabled "$gpt" '--precision bf16' '--precision fp32'
differ --checkpoint "$gpt" '--checkpoint ckA' '--checkpoint ckB'
differ --checkpoint "$gpt" '--checkpoint ckA' ''
differ --checkpoint-every "$gpt" '--checkpoint ckA --checkpoint-every 1' '--checkpoint ckA'
differ --resume "$gpt" '--checkpoint ckA --resume' '--checkpoint ckA'
differ --save "$train" '--save a.safetensors' ''
differ model "$gpt" '' '--model llama-tiny'

# The same name for other content.
mkdir first second
cp one.txt first/text && cp two.txt second/text
for each in first second; do
  printf '#!/bin/sh\ncd "%s" && exec "$@"\n' "$folder/$each" >"$each/in" && chmod +x "$each/in"
done
rm -f store.db
# shellcheck disable=SC2086
both $launch first/in "$zerolab" $gpt $base --no-db --data text : \
  $launch_again second/in "$zerolab" $gpt $base --no-db --data text
[ "$status" -eq 3 ] || fail content 'exit code'
grep -q 'same: data: rank 0 has .* tokens, crc32c .*, rank 1 has .* tokens, crc32c ' err || fail content 'told'

# A rank that cannot begin.
for bad in 0 1; do
  one='' two=''
  [ $bad -eq 0 ] && one='--data /nonexistent' || two='--data /nonexistent'
  # shellcheck disable=SC2086
  both $launch "$zerolab" $gpt $base --no-db $one : $launch_again "$zerolab" $gpt $base --no-db $two
  [ "$status" -eq 3 ] || fail nonexistent 'exit code'
  grep -q 'zerolab: error: .*/nonexistent' err || fail nonexistent 'told'
done
# shellcheck disable=SC2086
both $launch "$zerolab" $gpt $base --no-db : $launch_again "$zerolab" $gpt $base --no-db --ranks 3
[ "$status" -eq 1 ] || [ "$status" -eq 3 ] || fail ranks 'exit code'
grep -q 'run.ranks: 3 is not the 2 processes' err || fail ranks 'told'
