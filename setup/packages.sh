#!/bin/bash
# Makes sure that what a make target needs is on this machine:
#
#     setup/packages.sh demo|check|check-aarch64|check-mpis|check-packages|check-debians|check-engines|check-slurm|check-applications|lint
#
# On Debian and Ubuntu, missing packages are installed; elsewhere, missing programs and modules are named. Where nothing is
# missing, nothing is done. Python is the distribution's own, for a python3 that stands before it on PATH does not see the
# distribution's modules.
set -euo pipefail

python=/usr/bin/python3

# One line a need: targets, Debian's package, and what to look for where there are no Debian packages.
needs() {
    cat <<'END'
demo,check     gcc                    program  gcc cc
demo,check     libc6-dev              header   stdio.h
demo,check     openmpi-bin            program  mpirun
demo,check     python3-mpi4py         module   mpi4py
demo,check,lint python3-numpy         module   numpy
demo,check     python3-matplotlib     module   matplotlib
demo,check     libsqlite3-0           library  libsqlite3.so.0
demo           python3-torch          module   torch
check          libopenmpi-dev         program  mpicc
check          mpich                  program  mpirun.mpich mpiexec.hydra
check          libmpich-dev           program  mpicc.mpich mpicc
check          g++                    program  g++ c++
check          gfortran               program  gfortran
check          python3-pytest         module   pytest
check          python3-pytest-xdist   module   xdist
check          python3-scipy          module   scipy
check          python3-pandas         module   pandas
check          sqlite3                program  sqlite3
check          mandoc                 program  mandoc
check          chromium               program  chromium chromium-browser
check          e2fsprogs              program  mkfs.ext4
check          xfsprogs               program  mkfs.xfs
check          btrfs-progs            program  mkfs.btrfs
check          bindfs                 program  bindfs
check          iproute2               program  ip
check          util-linux             program  unshare
check          valgrind               program  valgrind
check-aarch64  gcc-aarch64-linux-gnu  program  aarch64-linux-gnu-gcc
check-aarch64  libc6-dev-arm64-cross  header   ../aarch64-linux-gnu/include/stdio.h
check-aarch64  qemu-user              program  qemu-aarch64
check-mpis     python3-venv           module   venv
check-mpis     python3-pip            module   pip
check-mpis     python3-dev            program  python3-config
check-packages python3-venv           module   venv
check-packages python3-pip            module   pip
check-packages zsh                    program  zsh
check-packages lmod                   program  module
check-packages pkg-config             program  pkg-config
check-packages dpkg-dev               program  dpkg-buildpackage
check-packages debhelper              program  dh
check-packages dh-python              program  dh_python3
check-packages rpm                    program  rpmbuild
check-packages gcc-aarch64-linux-gnu  program  aarch64-linux-gnu-gcc
check-packages libc6-dev-arm64-cross  header   ../aarch64-linux-gnu/include/stdio.h
check-debians  debootstrap            program  debootstrap
check-debians  python3-pip            module   pip
check          python3-venv           module   venv
check          python3-pip            module   pip
check-engines  python3-venv           module   venv
check-engines  python3-pip            module   pip
check-engines  openjdk-17-jre-headless program java
check-engines  postgresql             program  psql
check-slurm    slurmctld              program  slurmctld
check-slurm    slurmd                 program  slurmd
check-slurm    slurm-client           program  srun
check-slurm    libpmix2               library  libpmix.so.2
check-applications lammps             program  lmp
check-applications gromacs            program  gmx_mpi
lint           clang-format           program  clang-format
lint           clang                  program  clang
lint           clang-tidy             program  clang-tidy cppcheck
lint           shellcheck             program  shellcheck
lint           mypy                   program  mypy
END
}

needs_of_target() {
    needs | awk -v target="$1" '("," $1 ",") ~ ("," target ",") { $1 = ""; print }'
}

missing_packages() {
    local packages installed
    packages=$(needs_of_target "$1" | awk '{ print $1 }')
    # dpkg-query fails when it does not know one of the names; that one is then not in its answer.
    # shellcheck disable=SC2086 # one word a package
    installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' $packages 2>/dev/null |
        awk '$1 == "installed" { print $2 }') || true
    grep --invert-match --line-regexp --fixed-strings --file=<(printf '%s\n' "$installed") <<<"$packages" || true
}

install_packages() {
    local -a apt_get=(apt-get --option DPkg::Lock::Timeout=600) as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            echo "setup/packages.sh: missing: $*; install with: sudo apt-get install --no-install-recommends $*" >&2
            exit 1
        fi
        as_root=(sudo -n)
    fi
    echo "setup/packages.sh: installing $* (quiet for a minute or two)"
    as_root+=(env DEBIAN_FRONTEND=noninteractive)
    local said
    said=$("${as_root[@]}" "${apt_get[@]}" update --quiet=2 2>&1 &&
        "${as_root[@]}" "${apt_get[@]}" install --quiet=2 --yes --no-install-recommends "$@" 2>&1) || {
        echo "$said" >&2
        exit 1
    }
}

is_there() { # is_there KIND NAME...: whether one of the names is
    local kind=$1 name
    shift
    for name; do
        case $kind in
            program) command -v "$name" >/dev/null && return ;;
            header) [ -e "/usr/include/$name" ] && return ;;
            library) /sbin/ldconfig -p | grep --fixed-strings "$name" >/dev/null && return ;;
            module) "$python" -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('$name'))" && return ;;
        esac
    done
    return 1
}

missing_elsewhere() {
    local kind names
    needs_of_target "$1" | while read -r _ kind names; do
        # shellcheck disable=SC2086 # one word a name
        is_there "$kind" $names 2>/dev/null || echo "$kind ${names// / or }"
    done
}

target=${1-}
case $target in
    demo | check | check-aarch64 | check-mpis | check-packages | check-debians | check-engines | check-slurm | check-applications | lint) ;;
    *)
        echo "usage: setup/packages.sh demo|check|check-aarch64|check-mpis|check-packages|check-debians|check-engines|check-slurm|check-applications|lint" >&2
        exit 2
        ;;
esac

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    mapfile -t missing < <(missing_packages "$target")
    if [ ${#missing[@]} -gt 0 ]; then
        install_packages "${missing[@]}"
    fi
else
    absent=$(missing_elsewhere "$target" | paste --serial --delimiters=, | sed 's/,/, /g')
    if [ -n "$absent" ]; then
        echo "setup/packages.sh: missing for make $target: $absent (modules are those of $python)" >&2
        exit 1
    fi
fi
