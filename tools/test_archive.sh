#!/usr/bin/env bash
# Tests build/collimate-*.tar.gz (make archive) in a Debian 12 of base packages and python3: the steps of
# archive_steps.sh in a root that mmdebstrap made, which is kept in $COLLIMATE_CACHE. Before them: what a library or
# program of it may say about where its libraries lie, and that each library has a licence.
# The last line is "N passed, N failed, N skipped"; what is skipped says why.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${COLLIMATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/collimate}
base=$cache/debian-12-python3.tar
passed=0
ok() { printf 'ok %s\n' "$*"; passed=$((passed + 1)); }
end() { printf '%s passed, %s failed, %s skipped\n' "$passed" "$1" "$2"; exit "$1"; }
fail() { printf 'FAILED %s\n' "$*"; end 1 0; }
skip() { printf 'skipped, the steps in a Debian 12 of base packages: %s\n' "$*"; end 0 1; }

archive=$(ls -t build/collimate-*.tar.gz | head -n 1)
work=$(mktemp -d "${TMPDIR:-/tmp}/collimate-archive.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir -p "$work/root/opt/any where"
tar -C "$work/root/opt/any where" -xzf "$archive"
tree=$(echo "$work/root/opt/any where"/collimate-*)

for file in "$tree/bin/collimate" "$tree"/lib/collimate/*.so*; do
  paths=$(readelf -d "$file" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\].*/\2/p' | tr ':' '\n' | grep -v '^\$ORIGIN' || true)
  [ -z "$paths" ] || fail "${file#"$tree"/}: expected only paths from \$ORIGIN, got $paths"
  name=$(basename "$(readlink -f "$file")")
  [[ $name != lib* ]] || grep -q "^$name: " "$tree/LICENSES/README" || fail "$name: expected a licence in LICENSES, got none"
done
ok "libraries are looked for beside the program, and have licences"

[ "$(id -u)" = 0 ] || skip "expected root, got user $(id -un)"
if [ ! -e "$base" ]; then
  command -v mmdebstrap >/dev/null || skip "expected mmdebstrap; try tools/setup.sh archive"
  mkdir -p "$cache"
  sources=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
  options=()
  for file in $(grep -ls '^ *Acquire' /etc/apt/apt.conf /etc/apt/apt.conf.d/*); do options+=("--aptopt=$file"); done
  mmdebstrap --quiet --variant=minbase --include=python3 "${options[@]}" bookworm "$work/base.tar" \
    $(ls "${sources[@]}" 2>/dev/null) || skip "mmdebstrap failed; try again when the network is there"
  mv "$work/base.tar" "$base"
fi
tar -C "$work/root" -xf "$base"
cp tools/archive_steps.sh "$work/root/"
mkdir "$work/root/plugins"
cp build/release/bin/own_flow.so examples/grpo_flow.py "$work/root/plugins/"
inside=${tree#"$work/root"}
mount -t proc proc "$work/root/proc"
trap 'umount -l "$work/root/proc"; rm -rf --one-file-system "$work"' EXIT
chroot "$work/root" env -i HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8 sh /archive_steps.sh "$inside" /plugins | tee "$work/steps" ||
  fail "the steps above"
passed=$((passed + $(grep -c '^ok ' "$work/steps")))
end 0 0
