#!/usr/bin/env bash
# Runs the reader on machines that this is not: big-endian s390x and 64-bit ARM, emulated by qemu-user.
#
# Debian's python3 for each of them is downloaded and unpacked into a root of its own below the target folder. Nothing is
# installed but qemu, and the machine's own list of packages is left alone. Each foreign reader must give, for every file,
# exactly what the reader on this machine gives. Ends with the line that ./test counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
source .ci/lib.sh
packages qemu-user-static
work=$(mkdir -p "$target/python/foreign" && realpath "$target/python/foreign")
version=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

# unpacked ARCH: Debian's python3 for ARCH, below $work/ARCH/root.
unpacked() {
    local arch=$1 root=$work/$1 python
    [[ -e $root/ready ]] && return
    rm -rf "$root"
    mkdir -p "$root"/{root,lists/partial,cache/archives/partial,deb}
    # Lists of its own; the sources are the machine's.
    local apt=(-o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State::lists=$root/lists"
        -o "Dir::Cache=$root/cache" -o "Dir::State::status=$root/status" -o APT::Sandbox::User=root -qq)
    : >"$root/status"
    apt-get "${apt[@]}" update || missing "Debian's packages for $arch"
    python=$(apt-cache "${apt[@]}" depends python3-minimal | sed -n 's/.*Depends: \(python3\.[0-9]*-minimal\).*/\1/p' | head -n 1)
    (cd "$root/deb" && apt-get "${apt[@]}" download "$python" "lib$python" "lib${python%-minimal}-stdlib" \
        libc6 libgcc-s1 zlib1g libexpat1 libbz2-1.0 liblzma5 libffi8) || missing "Debian's python3 for $arch ($version)"
    local package
    for package in "$root"/deb/*.deb; do dpkg -x "$package" "$root/root"; done
    echo "${python%-minimal}" >"$root/ready"
}

passed=0 failed=0
python3 readers/python/tools/samples.py "$work/files"
find "$work/files" std-shell/tests/data/nixl -type f ! -name '*.jsonl' ! -name '*.md' | sort >"$work/list"
if [[ -d conformance/files ]]; then find conformance/files -name '*.bin' | sort >>"$work/list"; fi
PYTHONPATH=readers/python/src python3 -m telering_reader.conformance <"$work/list" >"$work/here"
for arch in s390x arm64; do
    unpacked "$arch"
    emulator=qemu-${arch/arm64/aarch64}-static
    run=("$emulator" -L "$work/$arch/root" "$work/$arch/root/usr/bin/$(<"$work/$arch/ready")")
    export PYTHONPATH=readers/python/src PYTHONHOME=$work/$arch/root/usr PYTHONDONTWRITEBYTECODE=1
    echo "$arch: $("${run[@]}" -c 'import sys, platform; print(sys.version.split()[0], platform.machine(), sys.byteorder)')"
    "${run[@]}" -m telering_reader.conformance <"$work/list" >"$work/$arch.out" || true
    unset PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
    while read -r file && read -r here <&3 && read -r there <&4; do
        if [[ $here == "$there" ]]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf '%s differs on %s:\n  here  %.300s\n  there %.300s\n' "$file" "$arch" "$here" "$there"
        fi
    done <"$work/list" 3<"$work/here" 4<"$work/$arch.out"
    if (($(wc -l <"$work/$arch.out") != $(wc -l <"$work/list"))); then
        failed=$((failed + 1))
        echo "$arch: $(wc -l <"$work/$arch.out") answers to $(wc -l <"$work/list") files"
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))
