# What the scripts of this folder share. A script names its packages with `install`, runs a program
# of its own with `run`, and passes what it saw to `judge`. Everything happens in a temporary folder.

set -uo pipefail
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP ${!TRITON_@} ${!NUMBA_@} ${!JUPYTER_@}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM
sed -n '2,/^$/s/^# \?//p' "$0" # the header, which says what is expected

# install NAME PACKAGE...: make a virtual environment NAME with exactly these packages.
install() {
    local place=$folder/$1 && shift
    "${PYTHON:-python3}" -m venv "$place" >&2 &&
        "$place/bin/python" -m pip install -q --disable-pip-version-check "$@" >&2 && return
    echo "Not tried: the installation of $* failed." >&2
    exit 2
}

# run NAME [ARGUMENT...]: run the Python program on standard input in the environment NAME. Its
# caches and configuration lie in the temporary folder.
run() {
    local name=$1 && shift
    cat >"$folder/program.py"
    (cd "$folder" && HOME=$folder PATH=$folder/$name/bin:$PATH \
        "$folder/$name/bin/python" -W ignore program.py "$@")
}

# judge TEXT: compare what was seen with the lines under "Seen:" in the script's header, and exit.
judge() {
    printf 'Seen now:\n%s\n' "$1"
    if [[ $1 == "$(sed -n '/^# Seen:/,/^$/s/^#     //p' "$0")" ]]; then
        echo "The behaviour is as stated."
        exit 0
    fi
    echo "The behaviour has changed."
    exit 1
}
