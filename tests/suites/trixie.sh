#!/bin/bash
# Makes Debian 13 in a folder, as root: its PyTorch has the MPI backend built in, with Open MPI 5; and it has MPICH 4.2.
#
#     tests/suites/trixie.sh FOLDER
#
# About five minutes and 2.5 GB. Nothing of the machine's own /dev is mounted in it, so that it can be removed like any folder
# once its proc, sys, dev/pts and dev/shm are unmounted.
set -euo pipefail

root=${1:?usage: tests/suites/trixie.sh FOLDER}
packages=(python3-torch python3-numpy python3-mpi4py python3-pytest python3-matplotlib openmpi-bin libopenmpi-dev mpich libmpich-dev
    gfortran gcc g++ libc6-dev make libsqlite3-0 sqlite3 mandoc binutils file procps)

mount_in() { # mount_in TYPE WHERE
    mountpoint --quiet "$root/$2" || mount -t "$1" "$1" "$root/$2"
}

if [ ! -e "$root/ready" ]; then
    mkdir -p "$root"
    [ -e "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase trixie "$root"
    mount_in proc proc
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service starts
    chmod +x "$root/usr/sbin/policy-rc.d"
    chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -c \
        "apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends ${packages[*]}"
    touch "$root/ready"
fi
mount_in proc proc
mount_in sysfs sys
mount_in devpts dev/pts
mount_in tmpfs dev/shm
