#!/bin/bash
# two_nodes_test.sh ZEROLAB MPIRUN: two nodes on this machine, each with network and host name of its own, and a
# cable between them: four ranks train as threads do, end when one of them is killed, go on from its checkpoint,
# and end on both sides when the cable is cut. Exits with 5 where the rights for it are missing.
set -eu
zerolab=$1 mpirun=$2
if [ -z "${TWO_NODES_FOLDER-}" ]; then  # once more, as the first node, in a world of processes that ends with it
  skip() {
    echo "skipped: $1"
    exit 5
  }
  "$mpirun" --version 2>/dev/null | grep -Eq 'Open (MPI|RTE)|OpenRTE' || skip "$mpirun is not Open MPI's"
  command -v ip >/dev/null || skip 'there is no ip (apt-get install iproute2)'
  spaces=(--net --uts --mount --pid --fork --kill-child --mount-proc)
  [ "$(id -u)" -eq 0 ] || spaces+=(--user --map-root-user)
  unshare "${spaces[@]}" sh -c 'ip link add name near type veth peer name cable && mount --bind /etc/hosts /etc/hosts' 2>/dev/null ||
    skip 'this user may not make network namespaces'
  TWO_NODES_FOLDER=$(mktemp -d)
  export TWO_NODES_FOLDER
  trap 'rm -rf "$TWO_NODES_FOLDER"' EXIT
  unshare "${spaces[@]}" "$0" "$@"
  exit
fi

cd "$TWO_NODES_FOLDER"
export HOME=$PWD XDG_DATA_HOME=$PWD XDG_CONFIG_HOME=$PWD
fail() {
  echo "$1" >&2
  tail -n 40 ./*.err >&2
  exit 1
}

# The nodes: this shell is on nodea; nodeb's namespaces live as long as the process in them.
unshare --net --uts sleep infinity &
far=$!
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
on_far() { nsenter --target $far --net --uts -- "$@"; }
printf '127.0.0.1 localhost\n10.99.0.1 nodea\n10.99.0.2 nodeb\n' >hosts
mount --bind hosts /etc/hosts
hostname nodea
on_far hostname nodeb
ip link add name near type veth peer name cable netns $far
ip addr add 10.99.0.1/24 dev near
on_far ip addr add 10.99.0.2/24 dev cable
for each in lo near; do ip link set $each up; done
for each in lo cable; do on_far ip link set $each up; done
printf '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\nexec nsenter --target %s --net --uts -- sh -c "$*"\n' $far >agent
chmod +x agent

# ranks OUTPUT ARGUMENTS...: four of them, two a node. No variable says where rank 0 is.
ranks() {
  local output=$1
  shift
  timeout -k 5 120 "$mpirun" --mca plm_rsh_agent "$PWD/agent" --mca btl tcp,self --mca btl_tcp_if_include 10.99.0.0/24 \
    --mca oob_tcp_if_include 10.99.0.0/24 -H nodea:2,nodeb:2 -n 4 --map-by ppr:2:node \
    "$zerolab" run tiny-gpt2 --backend cpu --communicator mpi --no-db -v "$@" \
    >"$output.out" 2>"$output.err"
}
losses() { grep -o '"loss": *\[[^]]*\]' "$1.out"; }
# alive PROCESS...: the ranks of the program, here and there.
alive() {
  local each
  for each in /proc/[0-9]*; do
    [ "$(readlink "$each/exe" 2>/dev/null)" = "$(readlink -f "$zerolab")" ] && echo "${each#/proc/}"
  done
  return 0
}
is_far() { [ "$(readlink "/proc/$1/ns/net")" = "$(readlink /proc/$far/ns/net)" ]; }
wait_for_step() {
  local tries=0
  until grep -q "step $2 " "$1.err" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "$1: no step $2"
    sleep 0.1
  done
}
wait_for_end() {
  local tries=0
  while [ -n "$(alive)" ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "$1: ranks are left: $(alive)"
    sleep 0.1
  done
}

# As threads.
for strategy in zero-0 zero-3; do
  "$zerolab" run tiny-gpt2 --backend cpu --no-db --ranks 4 --strategy $strategy --steps 4 -o json >threads.out 2>threads.err
  ranks nodes --strategy $strategy --steps 4 -o json || fail "$strategy: two nodes"
  [ -n "$(losses nodes)" ] && [ "$(losses nodes)" = "$(losses threads)" ] || fail "$strategy: other losses than threads"
done

# A far rank is killed; the run goes on from its checkpoint to the same end.
"$zerolab" run tiny-gpt2 --backend cpu --no-db --ranks 4 --strategy zero-1 --steps 150 -o json >threads.out 2>threads.err
ranks killed --strategy zero-1 --steps 150 --checkpoint kept --checkpoint-every 5 &
job=$!
wait_for_step killed 20
for each in $(alive); do
  is_far "$each" && kill -KILL "$each" && break
done
wait $job && fail 'a killed rank: the others end well'
wait_for_end 'a killed rank'
ranks resumed --strategy zero-1 --steps 150 --checkpoint kept --resume -o json || fail 'resumed'
last() { losses "$1" | grep -o '[0-9.e+-]*\]'; }
[ -n "$(last resumed)" ] && [ "$(last resumed)" = "$(last threads)" ] || fail 'resumed: another loss than threads'

# The cable is cut: both sides end by themselves, and the near one says who is missing.
ranks cut --strategy zero-2 --steps 200000 --collective-timeout 5 &
wait_for_step cut 20
ip link set near down
wait_for_end 'a cut cable'
grep -Eq 'timed out after 5000 ms: .*; not (there|sent by): rank .*[23]' cut.err || fail 'a cut cable: nobody says who is missing'
