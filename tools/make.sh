#!/usr/bin/env bash
# The one script behind the Makefile: installs what is missing, builds what the verb needs, does it.
set -euo pipefail
cd "$(dirname "$0")/.."
# Paths below the checkout are hashed relative to it: a fresh clone finds what another one compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
verb=${1:-help}
shift || true

show_help() {
  cat <<'END'
make quickstart            build, then train a small policy by SFT and GRPO; ends with held-out accuracy and a report
make test                  build and run all tests; last line "N passed, N failed, N skipped"
make check                 allowed includes, stand-alone headers, format, lint, links of the documents
make bench                 build and run the benchmarks
make goldens [GOLDENS=DIR] replay recorded losses of other implementations through our own recipes
make build                 the `collimate` program only: build/release/bin/collimate
make install PREFIX=DIR    build and install: bin/, lib/collimate/, headers, find_package(Collimate), completions, a man page
make archive               build/collimate-VERSION-linux-x86_64.tar.gz, which runs from any directory of a Debian 12
make clean                 remove build/ (the shared virtual environment stays)
END
}

# One compiler process needs up to 1.5 GB: as many as cores and free memory allow.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((memory < cores ? memory : cores))
}

# configure PRESET: once; afterwards ninja itself notices new files and changed options.
configure() {
  local preset=$1
  if [ ! -e "build/$preset/build.ninja" ] || [ CMakePresets.json -nt "build/$preset/build.ninja" ]; then
    mkdir -p "build/$preset"
    cmake --preset "$preset" >"build/$preset/configure.log" 2>&1 ||
      { cat "build/$preset/configure.log" >&2; exit 1; }
  fi
}

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  configure "$preset"
  ninja -C "build/$preset" -j "$(jobs)" "$@" >&2
}

# install_components PREFIX COMPONENT...: those of cmake/install.cmake.
install_components() {
  local prefix=$1 component
  shift
  for component in "$@"; do
    cmake --install build/release --prefix "$prefix" --component "$component" >>build/release/install.log ||
      { tail -n 5 build/release/install.log >&2; return 1; }
  done
}

# The program with all libraries that it loads, without their symbol tables, which are a fifth of libtorch. LICENSES at
# the top leads to the directory of an installation.
make_archive() {
  local name tree
  name=collimate-$(build/release/bin/collimate version | sed -n 's/^collimate //p')-linux-x86_64
  tree=build/archive/$name
  rm -rf build/archive
  install_components "$PWD/$tree" program libraries wheels
  ln -s share/doc/collimate/LICENSES "$tree/LICENSES"
  find "$tree/bin" "$tree/lib" -type f \( -name 'lib*.so*' -o -name collimate \) -exec strip --strip-unneeded {} +
  tar --sort=name --owner=0 --group=0 --numeric-owner -C build/archive -cf - "$name" | gzip -n >"build/$name.tar.gz"
  printf '%s: %s MB, %s MB extracted\n' "build/$name.tar.gz" "$(du -m "build/$name.tar.gz" | cut -f1)" "$(du -sm "$tree" | cut -f1)"
  rm -rf build/archive
}

case $verb in
  help) show_help ;;
  build)
    tools/setup.sh
    build release collimate bench_published
    ;;
  package) # below PREFIX what a wheel has in site-packages/collimate: tools/packaging/backend.py asks for it
    prefix=${1:?where}
    tools/setup.sh
    build release collimate collimate_native
    install_components "$prefix" package program libraries
    # Beside the package in site-packages stand those of torch and pyarrow.
    cmake -DPROGRAM="$prefix/bin/collimate" -P cmake/package_rpath.cmake
    ;;
  quickstart)
    tools/setup.sh
    build release collimate
    exec build/release/bin/collimate bench quickstart --single "$@"
    ;;
  install)
    tools/setup.sh
    build release collimate collimate_library
    install_components "${1:?a directory}" program libraries wheels development
    printf 'installed in %s\n' "$1"
    ;;
  archive)
    tools/setup.sh
    build release collimate own_flow_plugin  # with the second the archive is tested
    make_archive
    ;;
  test-install) exec tools/test_install.sh ;;
  test-archive)
    tools/setup.sh archive
    tools/make.sh archive
    exec tools/test_archive.sh
    ;;
  test)
    tools/setup.sh test
    build release all benches  # benches, so that they stay compilable
    exec .venv/bin/python tools/run_tests.py build/release "$@"
    ;;
  check)
    tools/setup.sh check
    build release help >/dev/null
    exec .venv/bin/python tools/check.py "$@"
    ;;
  bench)
    tools/setup.sh
    build release collimate benches
    exec bench/run.sh "$@"
    ;;
  goldens)
    tools/setup.sh
    build release collimate-goldens
    exec build/release/bin/collimate-goldens "$@"
    ;;
  sanitize) # asan or tsan [--minutes N]: what tools/sanitize.py says
    preset=${1:?asan or tsan}
    tools/setup.sh
    configure "$preset"
    exec .venv/bin/python tools/sanitize.py "$preset" --jobs "$(jobs)" "${@:2}"
    ;;
  cuda)
    tools/setup.sh
    build cuda collimate_cuda cuda_test bench_cuda
    if [ -e /dev/nvidiactl ]; then
      exec build/cuda/bin/cuda_test
    fi
    echo "compiled; the tests of build/cuda/bin/cuda_test need a GPU, and this machine has none"
    ;;
  clean) rm -rf build ;;
  *)
    echo "[make.sh] expected one of quickstart test check bench goldens build install archive package sanitize cuda test-install test-archive clean help, got $verb" >&2
    exit 2
    ;;
esac
