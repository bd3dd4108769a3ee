# What the steps share. ./test reads this before each step; a step runs in the project's root folder,
# with `set -euo pipefail` and no standard input.

# Where cargo builds. Steps that use another compiler or other flags have a folder of their own in it,
# so that they do not undo each other's work.
target=${CARGO_TARGET_DIR:-target}

# A tool is missing and can't be installed here. In continuous integration that is a failure:
# a test never passes by not running. Elsewhere the step is skipped, and says why.
missing() {
    echo "missing: $1"
    if [[ -n ${CI:-} ]]; then
        echo "failed: in continuous integration every step must run"
        exit 1
    fi
    echo "SKIPPED, not tested: $1"
    exit 77
}

# as_root COMMAND...: runs it as root, or explains why that is not possible.
as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        missing "root (or sudo without a password) to run: $*"
    fi
}

# packages NAME...: Debian packages that must be installed; installs those that are not.
packages() {
    local absent=() name
    command -v dpkg-query >/dev/null || missing "Debian's packages $* (this is not a Debian system)"
    for name in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || absent+=("$name")
    done
    ((${#absent[@]} == 0)) && return
    echo "installing Debian packages: ${absent[*]}"
    # Another installation may be under way: a machine's own at night, or a second run of this.
    as_root apt-get -qq update || { sleep 60 && as_root apt-get -qq update; } || missing "apt-get update failed"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "${absent[@]}" ||
        missing "apt-get could not install: ${absent[*]}"
}

# component NAME COMMAND: a part of the Rust toolchain, for example `component clippy cargo-clippy`.
component() {
    command -v "$2" >/dev/null && "$2" --version >/dev/null 2>&1 && return
    echo "installing the Rust component $1"
    rustup component add "$1" || missing "the Rust component $1: rustup component add $1"
}

# cargo_tool NAME VERSION: a cargo subcommand from crates.io, built once into the target folder.
cargo_tool() {
    local root
    mkdir -p "$target/tools"
    root=$(realpath "$target/tools")
    PATH=$root/bin:$PATH
    "$1" --version 2>/dev/null | grep -qF "$2" && return
    echo "building $1 $2 (once, into the target folder)"
    cargo install "$1" --version "$2" --locked --root "$root" || missing "$1 $2: cargo install $1"
}

# numpy_python: TELERING_PYTHON becomes a Python with numpy, in an environment below the target folder.
numpy_python() {
    local venv=$target/conformance/venv
    if [[ ! -e $venv/ready ]]; then
        python3 -c 'import ensurepip' 2>/dev/null || packages python3-venv
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check numpy || missing "numpy from PyPI"
        touch "$venv/ready"
    fi
    TELERING_PYTHON=$(realpath "$venv")/bin/python
    export TELERING_PYTHON
}

# debian_rust: cargo of the stable toolchain with Debian's rustc, whose library sources Debian packages.
# That builds for targets that the stable toolchain has no library for.
debian_rust() {
    RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 cargo "$@" --locked --target-dir "$target/debian-rust"
}

# prometheus_tools: PROMETHEUS and PROMTOOL become the programs of Debian's package, installed or unpacked below the
# target folder. It is not installed for the machine: that would start a server at a port that tests may want.
prometheus_tools() {
    local folder=$target/prometheus/package
    if PROMETHEUS=$(command -v prometheus) && PROMTOOL=$(command -v promtool); then
        export PROMETHEUS PROMTOOL
        return
    fi
    if [[ ! -x $folder/usr/bin/promtool ]]; then
        command -v apt-get >/dev/null || missing "Debian's package prometheus (this is not a Debian system)"
        mkdir -p "$folder"
        # The lists of packages may be old, or not there at all.
        (cd "$folder" && { apt-get -qq download prometheus || { as_root apt-get -qq update && apt-get -qq download prometheus; }; }) ||
            missing "Debian's package prometheus: apt-get download prometheus"
        dpkg -x "$folder"/prometheus_*.deb "$folder"
        rm "$folder"/prometheus_*.deb
    fi
    PROMETHEUS=$(realpath "$folder")/usr/bin/prometheus
    PROMTOOL=$(realpath "$folder")/usr/bin/promtool
    export PROMETHEUS PROMTOOL
}

# deploy_python: TELERING_PYTHON becomes a Python that reads YAML and knows the schemas of Kubernetes and Grafana.
deploy_python() {
    local venv=$target/prometheus/venv
    # Fixed versions: these are descriptions to be held against. The last one is for Grafana 11.6, the newest it has.
    local descriptions=(pyyaml==6.0.4 kubernetes-validate==1.37.0 'grafana-foundation-sdk==1769699379!11.6.0')
    if [[ $(cat "$venv/ready" 2>/dev/null) != "${descriptions[*]}" ]]; then
        python3 -c 'import ensurepip' 2>/dev/null || packages python3-venv
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "${descriptions[@]}" ||
            missing "from PyPI: ${descriptions[*]}"
        echo "${descriptions[*]}" >"$venv/ready"
    fi
    TELERING_PYTHON=$(realpath "$venv")/bin/python
    export TELERING_PYTHON
}
