#!/usr/bin/env bash
# Installs what the build needs and is not there yet: Debian packages by name and one pinned virtual environment.
#   tools/setup.sh [GROUP...]     groups of tools/packages.txt; `build` is always among them
# A second run finds its stamp and ends at once. The environment (about 1.4 GB) lives in a cache directory shared by all
# checkouts, $COLLIMATE_CACHE (default ~/.cache/collimate), named by the hash of its list; .venv links to it.
set -euo pipefail
cd "$(dirname "$0")/.."
groups="build $*"
cache=${COLLIMATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/collimate}
key=$(grep -v '^#' tools/requirements.txt | sha256sum | cut -c1-12)
venv=$cache/venv-$key
test_packages=$cache/test-packages-$(grep -v '^#' tools/requirements-test.txt | sha256sum | cut -c1-12)
say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf '[setup] %s\n' "$*" >&2; exit 1; }

wanted_packages() {
  local group name
  while read -r group name; do
    case " $groups " in *" $group "*) printf '%s\n' "$name" ;; esac
  done < <(grep -v '^#' tools/packages.txt)
}

missing_packages() {
  local name
  for name in $(wanted_packages); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)" = installed ] || printf '%s ' "$name"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "expected root or sudo to install packages, got user $(id -un); try, as root: apt-get install $missing"
  fi
}

# Another apt that holds a lock is waited for, as long as 10 minutes: apt-get update itself does not wait.
apt() {
  local begin=$SECONDS log status
  log=$(mktemp)
  while :; do
    status=0
    as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=600 "$@" </dev/null 2>&1 |
      tee "$log" >&2 || status=1
    [ "$status" != 0 ] && grep -q 'Could not get lock\|Unable to lock' "$log" && [ $((SECONDS - begin)) -lt 600 ] || break
    say "another program holds apt's lock; trying again"
    sleep 5
  done
  rm -f "$log"
  return "$status"
}

install_packages() {
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null || fail "expected a Debian system with apt-get, got none; try installing by hand: $missing"
  say "installing Debian packages: $missing"
  apt update -q || fail "apt-get update failed; try again when the network is there"
  # shellcheck disable=SC2086
  apt install -y -q --no-install-recommends $missing || fail "apt-get could not install: $missing"
}

# The mark .complete comes last, so that an interrupted run is started over; one run at a time holds the lock.
install_environment() {
  [ -e "$venv/.complete" ] && return 0
  mkdir -p "$cache"
  exec 9>"$cache/.lock"
  flock 9
  if [ ! -e "$venv/.complete" ]; then
    say "making $venv (downloads about 600 MB once)"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install -q --no-deps --only-binary :all: --disable-pip-version-check -r tools/requirements.txt >&2 ||
      fail "pip could not install tools/requirements.txt into $venv; try again when the network is there"
    touch "$venv/.complete"
  fi
  flock -u 9
}

# Group test: Python packages for the tests alone, found by tools/run_tests.py through the link .test-packages.
install_test_packages() {
  case " $groups " in *" test "*) ;; *) return 0 ;; esac
  if [ ! -e "$test_packages/.complete" ]; then
    mkdir -p "$cache"
    exec 9>"$cache/.lock"
    flock 9
    if [ ! -e "$test_packages/.complete" ]; then
      rm -rf "$test_packages"
      "$venv/bin/python" -m pip install -q --no-deps --only-binary :all: --disable-pip-version-check \
        --target "$test_packages" -r tools/requirements-test.txt >&2 ||
        fail "pip could not install tools/requirements-test.txt into $test_packages; try again when the network is there"
      touch "$test_packages/.complete"
    fi
    flock -u 9
  fi
  ln -sfn "$test_packages" .test-packages
}

stamp=$cache/stamp-$(cat tools/packages.txt tools/requirements.txt tools/setup.sh | sha256sum | cut -c1-12)-$(printf '%s' "$groups" | tr -c 'a-z\n' '-')
if [ ! -e "$stamp" ] || [ ! -e "$venv/.complete" ] || ! command -v g++ >/dev/null || ! command -v ninja >/dev/null; then
  install_packages
  install_environment
  touch "$stamp"
fi
[ ! -e .venv ] || [ -L .venv ] || fail "expected .venv to be a link made by this script, got a directory; try moving it away"
[ "$(readlink .venv || true)" = "$venv" ] || ln -sfn "$venv" .venv
install_test_packages
