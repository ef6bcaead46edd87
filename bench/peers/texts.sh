#!/usr/bin/env bash
# Chat templates and tokenizers beside other programs', a command for each figure of decisions 25 and 28:
#   bench/peers/texts.sh setup                     installs Jinja2, TRL's templates, tokenizers, sentencepiece, tiktoken
#   bench/peers/texts.sh templates [DIRECTORY]     what Jinja2 makes of templates (*.jinja), TRL's unless named
#   bench/peers/texts.sh damaged [N [DIRECTORY]]   N (100,000) templates with damage end, written or refused
#   bench/peers/texts.sh tokenizers N DIRECTORY... N random texts through each tokenizer: ids and texts of the others
#   bench/peers/texts.sh table SECONDS [DIRECTORY...]  a row for each tokenizer (those of the tests): its kind, how many
#                                                  random texts were compared in so many seconds, how many differ
# PEERS: where setup makes a virtual environment of its own, `texts` (default ~/.cache/collimate-peers).
set -euo pipefail
cd "$(dirname "$0")/../.."
environment=${PEERS:-$HOME/.cache/collimate-peers}/texts
python=$environment/bin/python
bin=build/release/bin

refuse() {
  echo "[bench/peers/texts.sh] expected $1, got $2; try $3" >&2
  exit 2
}

setup() {
  python3 -m venv "$environment"
  "$python" -m pip install -q --disable-pip-version-check jinja2==3.1.6 tokenizers==0.23.3 sentencepiece==0.2.3 \
    tiktoken==0.14.0
  "$python" -m pip install -q --disable-pip-version-check --no-deps trl==1.16.0  # for its templates alone
}

trl_templates() { echo "$environment"/lib/python3*/site-packages/trl/chat_templates; }

templates() {
  "$python" tests/golden/make_templates.py "${1:-$(trl_templates)}" "$folder/cases.json"
  COLLIMATE_TEMPLATE_CASES=$folder/cases.json "$bin/text_test" --gtest_filter=Jinja.WritesWhatJinja2Writes
}

damaged() {
  COLLIMATE_TEMPLATE_ROUNDS=${1:-100000} COLLIMATE_TEMPLATE_DIRECTORY=${2:-$(trl_templates)} \
    "$bin/text_test" --gtest_filter=Jinja.DamagedTemplatesAreWrittenOrRefused
}

tokenizers() {
  [ $# -ge 2 ] || refuse "a number of texts and directories of tokenizers" "${*:-nothing}" "1000000 DIRECTORY"
  for directory in "${@:2}"; do
    "$python" tests/golden/make_tokenizers.py --random "$1" "$directory" "$folder/records"
    printf '%s: ' "$directory"
    "$bin/bench_tokenizer" equal "$directory" "$folder/records"
  done
}

# One row of the table: batches of texts, of another seed each, until the seconds are over.
table_row() {
  local directory=$1 seconds=$2 began=$SECONDS seed=100 texts=0 ids=0 decoded=0 line
  while [ $((SECONDS - began)) -lt "$seconds" ]; do
    "$python" tests/golden/make_tokenizers.py --seed "$seed" --random 10000 "$directory" "$folder/records"
    line=$("$bin/bench_tokenizer" equal "$directory" "$folder/records" | tee -a "$folder/differences" | tail -1)
    [[ $line =~ ^([0-9]+)\ texts:\ ([0-9]+)\ with\ other\ ids,\ ([0-9]+)\ with ]] || refuse "counts" "$line" "bench_tokenizer"
    texts=$((texts + BASH_REMATCH[1])) ids=$((ids + BASH_REMATCH[2])) decoded=$((decoded + BASH_REMATCH[3]))
    seed=$((seed + 1))
  done
  echo "| $(basename "$directory") | $texts | $ids | $decoded |"
}

table() {
  local seconds=${1:?seconds for each tokenizer} directories=("${@:2}")
  [ ${#directories[@]} -gt 0 ] || directories=(collimate/text/testdata/kinds/*/)
  echo "| tokenizer | random texts | with other ids | decoded otherwise |"
  echo "|---|---|---|---|"
  for directory in "${directories[@]}"; do table_row "${directory%/}" "$seconds"; done
  grep -vE '^[0-9]+ texts' "$folder/differences" >&2 || true
}

case ${1:-} in
  setup) setup ;;
  templates | damaged | tokenizers | table)
    [ -x "$python" ] || refuse "the programs to compare with" "none in $environment" "bench/peers/texts.sh setup"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$@"
    ;;
  *) refuse "setup, templates, damaged, tokenizers or table" "${1:-nothing}" "the first lines of this file" ;;
esac
