#!/bin/sh
# cluster.sh HOST... -- COMMAND...: runs a command, such as mpirun, beside hosts h1, h2, ... Each
# HOST is AHEAD_S,RATE: by how many seconds its clock is ahead, and at which rate it sends, as tc
# writes it (empty: as fast as it can).
#
#     head, COMMAND          10.0.0.254
#       lan, a bridge
#         h1 --+-- h2 ...    10.0.0.1, 10.0.0.2, ...
#
# A host is a process that sleeps in a network, a name, a clock and a /dev/shm of its own. This
# script is the first process of a PID namespace (cluster.py), so the kernel ends all with it.
set -e

start_host() { # start_host NUMBER AHEAD_S RATE
    # shellcheck disable=SC2016 # expanded on the host
    {
        unshare --net --uts --ipc --mount --time --monotonic "$2" --boottime "$2" --fork sh -ec '
            hostname "$1"
            mount -t tmpfs shm /dev/shm
            echo $$ >/run/started
            exec sleep infinity' sh "h$1" || echo none >/run/started
    } &
    read -r pid </run/started
    [ "$pid" != none ]
    echo "$pid" >"/run/h$1"
    echo "10.0.0.$1 h$1" >>/run/names
    ip link add "to-h$1" type veth peer name eth0 netns "$pid"
    ip link set "to-h$1" master lan up
    there ip link set lo up
    there ip address add "10.0.0.$1/24" dev eth0
    there ip link set eth0 up
    [ -z "$3" ] || there tc qdisc add dev eth0 root tbf rate "$3" burst 64k limit 1m
}

there() { # there COMMAND...: in the network of the host that is being started
    nsenter --net --target "$pid" "$@"
}

hostname head
mount -t tmpfs hosts /run
mkfifo /run/started
printf '%s\n' '127.0.0.1 localhost' '10.0.0.254 head' >/run/names
mount --bind /run/names /etc/hosts
ip link set lo up
ip link add lan type bridge
ip address add 10.0.0.254/24 dev lan
ip link set lan up
number=0
while [ "$1" != -- ]; do
    number=$((number + 1))
    start_host $number "${1%,*}" "${1#*,}"
    shift
done
shift
"$@"
