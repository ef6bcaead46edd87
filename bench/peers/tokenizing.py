"""Encoding and decoding beside Hugging Face `tokenizers`, one kind of tokenizer after the other, both on two threads:

    python3 bench/peers/tokenizing.py TOKENIZER_DIRECTORY ... TEXT

Each directory has a tokenizer.json; the lines of TEXT (at most 20 MB) are encoded and decoded in rounds, after one that
warms up. A row per directory: the least, middle and largest MB/s of each side, and the ratio of the middles.
$PEER_PYTHON is the Python that has `tokenizers`.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "build/release/bin/bench_tokenizer"
ROUNDS, THREADS = 5, 2
MOST_BYTES = 20_000_000

# What runs in the peer's Python: prints the same line of JSON as bench_tokenizer.
PEER = """
import json, sys, time
from tokenizers import Tokenizer
directory, text, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
tokenizer = Tokenizer.from_file(directory + "/tokenizer.json")
lines = open(text, encoding="utf-8", newline="\\n").read().split("\\n")
size = sum(len(line.encode()) for line in lines) / 1e6
encoded, decoded = [], []
for round in range(rounds + 1):
    begin = time.perf_counter()
    ids = tokenizer.encode_batch_fast(lines, add_special_tokens=False)
    there = time.perf_counter() - begin
    ids = [row.ids for row in ids]
    begin = time.perf_counter()
    back = tokenizer.decode_batch(ids)
    behind = time.perf_counter() - begin
    if round > 0:
        encoded.append(size / there)
        decoded.append(sum(len(line.encode()) for line in back) / 1e6 / behind)
middle = lambda rates: [min(rates), sorted(rates)[len(rates) // 2], max(rates)]
print(json.dumps({"encode": middle(encoded), "decode": middle(decoded)}))
"""


def measured(command: list) -> dict:
    environment = {**os.environ, "RAYON_NUM_THREADS": str(THREADS), "TOKENIZERS_PARALLELISM": "true"}
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def short_text(path: str, folder: str) -> str:
    content = pathlib.Path(path).read_bytes()[:MOST_BYTES].decode("utf-8", "ignore")
    out = pathlib.Path(folder) / "text"
    out.write_text("\n".join(content.splitlines()) + "\n", encoding="utf-8", newline="\n")
    return str(out)


def row(directory: str, text: str) -> str:
    python = os.environ.get("PEER_PYTHON", sys.executable)
    ours = measured([BENCH, "speed", directory, text, str(ROUNDS), str(THREADS)])
    theirs = measured([python, "-c", PEER, directory, text, str(ROUNDS)])
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
