"""Encoding and decoding beside the program that a tokenizer is from, one after the other, both on two threads:

    python3 bench/peers/tokenizing.py TOKENIZER_DIRECTORY ... TEXT

Each directory has a tokenizer.json (Hugging Face `tokenizers`), a SentencePiece tokenizer.model (PyPI's
`sentencepiece`), or a file of tiktoken, Llama 3's tokenizer.model or qwen.tiktoken (PyPI's `tiktoken`). The lines of
TEXT (at most 20 MB) are encoded and decoded in rounds, after one that warms up. A row per directory: the least, middle
and largest MB/s of each side, and the ratio of the middles. `bench/peers/texts.sh setup` installs the other programs;
$PEER_PYTHON is another Python that has them.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import compare

BENCH = compare.ROOT / "build/release/bin/bench_tokenizer"
ROUNDS, THREADS = 5, 2
MOST_BYTES = 20_000_000

# This runs in the peer's Python and prints the same line of JSON as bench_tokenizer.
PEER = """
import json, pathlib, sys, time, unicodedata
from make_tokenizers import HuggingFaceSide, SentencePieceSide, side_of
directory, text, rounds, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
side = side_of(pathlib.Path(directory))
model = side.model

def encode(lines):
    if isinstance(side, HuggingFaceSide):
        return model.encode_batch_fast(lines, add_special_tokens=False)
    if isinstance(side, SentencePieceSide):
        return model.encode(lines, num_threads=threads)
    if side.form:
        lines = [unicodedata.normalize(side.form, line) for line in lines]
    return model.encode_ordinary_batch(lines, num_threads=threads)

def decode(ids):
    if isinstance(side, HuggingFaceSide):
        return model.decode_batch(ids)
    if isinstance(side, SentencePieceSide):
        return model.decode(ids, num_threads=threads)
    return model.decode_batch(ids, num_threads=threads)

lines = open(text, encoding="utf-8", newline="\\n").read().split("\\n")
size = sum(len(line.encode()) for line in lines) / 1e6
encoded, decoded = [], []
for round in range(rounds + 1):
    begin = time.perf_counter()
    ids = encode(lines)
    there = time.perf_counter() - begin
    ids = [getattr(row, "ids", row) for row in ids]
    begin = time.perf_counter()
    back = decode(ids)
    behind = time.perf_counter() - begin
    if round > 0:
        encoded.append(size / there)
        decoded.append(sum(len(line.encode()) for line in back) / 1e6 / behind)
middle = lambda rates: [min(rates), sorted(rates)[len(rates) // 2], max(rates)]
print(json.dumps({"encode": middle(encoded), "decode": middle(decoded)}))
"""


def measured(command: list) -> dict:
    environment = {**os.environ, "RAYON_NUM_THREADS": str(THREADS), "TOKENIZERS_PARALLELISM": "true",
                   "PYTHONPATH": str(compare.ROOT / "tests/golden")}
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def short_text(path: str, folder: str) -> str:
    content = pathlib.Path(path).read_bytes()[:MOST_BYTES].decode("utf-8", "ignore")
    out = pathlib.Path(folder) / "text"
    out.write_text("\n".join(content.splitlines()) + "\n", encoding="utf-8", newline="\n")
    return str(out)


def row(directory: str, text: str) -> str:
    python = os.environ.get("PEER_PYTHON", compare.python("texts"))
    ours = measured([BENCH, "speed", directory, text, str(ROUNDS), str(THREADS)])
    theirs = measured([python, "-c", PEER, directory, text, str(ROUNDS), str(THREADS)])
    cells = [pathlib.Path(directory).name]
    for work in ("encode", "decode"):
        cells += ["{:.1f} {:.1f} {:.1f}".format(*side[work]) for side in (ours, theirs)]
        cells.append("{:.2f}".format(ours[work][1] / theirs[work][1]))
    return " | ".join(cells)


def main(words: list):
    if len(words) < 2:
        sys.exit("[tokenizing.py] expected directories of tokenizers and a text, got " + (" ".join(words) or "nothing"))
    print("tokenizer | encode, ours | theirs | ratio | decode, ours | theirs | ratio")
    with tempfile.TemporaryDirectory() as folder:
        text = short_text(words[-1], folder)
        for directory in words[:-1]:
            print(row(directory, text), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
