"""Makes the small tokenizers of collimate/text/testdata/kinds/ and vectors.json there: the ids and texts that Hugging
Face `tokenizers` give for them.

  python make_tokenizers.py            writes the folder
  python make_tokenizers.py --only NAME...  writes these tokenizers alone; vectors of others stay
  python make_tokenizers.py --vectors  keeps the tokenizers and draws other vectors
  python make_tokenizers.py --random N DIRECTORY OUT  writes N random texts and their ids for `bench_tokenizer equal`;
                                       --seed S draws others

Needs tokenizers 0.23.3, sentencepiece 0.2.3 and tiktoken 0.14.0. The text is the repository's own documentation;
training draws other tokenizers each time, whose vectors change with them.
"""
import argparse
import base64
import json
import pathlib
import random
import shutil
import struct
import tempfile
import unicodedata

import sentencepiece
import tiktoken
from small_tokenizers import MARK, ROOT, WORLD, added, corpus, make_all, train_sentencepiece, trained, write_rules
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

OUT = ROOT / "collimate/text/testdata/kinds"
TEXTS = [
    "", "the cat sat on the mat", " the", "the  the   cat", "it's THE'S 1234 34, and! (don't) we'll do not .",
    "größe über straße naïve café", "cafe\u0301 nai\u0308ve", "你好 世界你好", "🦙👩\u200d👩\u200d👧 e\u200bz \u200d",
    "\n\n\t x\r\n  y \n", "a<s>b<mask> c</s>", "<tool>x</s>y<s>",
    "\u180e \xa0\u2028x", "\u2581\u2581 x", "\x00\x01\x7f",
    " ", "   ", "ẛ\u0323 ﬁ Å Å 각 각 ② Ⅷ ㍿ ｶﾞ Ａ１", "İstanbul ΑΣ ǅ", "1٣४৫² ½Ⅷ 10-20", "a_b-c.d_e;f", "שלום عالم नमस्ते",
    "x" * 120 + " y", "日本語のテキストとカタカナー", "lone\ufffd\ufeff", "[UNK] [CLS] ##x",
    "e\u0301\u0316 e\u0301\u0316\u0317 ㍿\u0301 ②\u0301",
    "どこで生れ。Yes", "りんご林檎アップル ー a", "  りa カ゛ー漢々〆", "aあ\u0301б\u0308 \u0301", "a1あ2б٣ १अ", "a \u0378b あ\U000E01F0漢",
    "日本語とEnglishとрусскийと😀\u200d " * 40,
]


# Bytes that belong to no character ahead of another's first byte, and behind its last.
BROKEN = [0x80, 0xBF, 0xC0, 0xC3, 0xE4, 0xF0, 0xF5, 0xFF]


def random_text(rng: random.Random, words: list) -> str:
    """Words, spaces, rare characters of every kind, code points that no Unicode knows among them."""
    parts = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.randrange(10)
        if kind < 3:
            parts.append(rng.choice(words))
        elif kind == 3:
            parts.append(rng.choice([" ", "  ", "\n", "\t", "\u3000", "\xa0", " \n ", "\u2028"]))
        elif kind == 4:
            parts.append("".join(rng.choice("abcdefXYZ0123456789.,-_'#@<>[]") for _ in range(rng.randrange(1, 12))))
        elif kind == 5:
            parts.append("".join(rng.choice(WORLD) for _ in range(rng.randrange(1, 6))))
        elif kind == 6:
            parts.append(rng.choice(
                ["<s>", "</s>", "<mask>", "<tool>", "[CLS]", "<|endoftext|>", MARK, MARK * 3, "\ufffd"]))
        elif kind == 7:
            parts.append("".join(any_character(rng) for _ in range(rng.randrange(1, 4))))
        elif kind == 8:
            base = rng.choice("aeoucnEAי가か")
            parts.append(base + "".join(chr(rng.randrange(0x300, 0x370)) for _ in range(rng.randrange(1, 4))))
        else:
            parts.append(rng.choice(
                ["👩\u200d👩\u200d👧", "🇩🇪", "\u200b", "\u200d", "\ufe0f", "🦙🏽", "e\u0301", "ﬁ", "ｶﾞ"]))
        if rng.randrange(3) > 0:
            parts.append(" ")
    if rng.randrange(400) == 0:
        parts.append(rng.choice("xあ1-") * rng.randrange(50, 400))
    return "".join(parts)


def any_character(rng: random.Random) -> str:
    while True:
        code = rng.randrange(rng.choice([0x250, 0x2000, 0x3100, 0x10000, 0x10000, 0x1F900, 0x20000, 0x110000]))
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def vector(name: str, tokenizer: Tokenizer, text: str) -> dict:
    ids = tokenizer.encode(text).ids
    return {"tokenizer": name, "text": text, "ids": ids, "decoded": tokenizer.decode(ids),
            "with_special": tokenizer.decode(ids, skip_special_tokens=False)}


class SentencePieceSide:
    """SentencePiece itself, over a text without its special tokens; `<s>` in front where the config says so."""

    def __init__(self, path: pathlib.Path):
        self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        file = path.parent / "tokenizer_config.json"
        config = json.loads(file.read_text()) if file.exists() else {}
        self.front = [self.model.bos_id()] if config.get("add_bos_token", False) else []

    def takes(self, text: str) -> bool:
        return not any(special in text for special in ("<s>", "</s>", "<unk>", "\0"))

    def vector(self, name: str, text: str) -> dict:
        ids = self.model.encode(text)
        return {"tokenizer": name, "text": text, "ids": self.front + ids,
                "decoded": self.model.decode([i for i in ids if i != self.model.unk_id()])}


class TiktokenSide:
    """tiktoken with a family's pattern and special tokens, whose ids follow the ranks; decoding keeps only `kept`."""

    def __init__(self, path: pathlib.Path, pattern: str, specials: list, form: str, kept: tuple = ()):
        ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in path.read_text().splitlines())}
        self.form = form
        ids = {s: len(ranks) + i for i, s in enumerate(specials)}
        self.model = tiktoken.Encoding("made", pat_str=pattern, mergeable_ranks=ranks, special_tokens=ids)
        self.specials = {i for s, i in ids.items() if s not in kept}

    def takes(self, text: str) -> bool:
        """Python's normal form knows marks that tokenizers' does not, which is ours."""
        return not self.form or self.normal(text) == getattr(normalizers, self.form)().normalize_str(text)

    def normal(self, text: str) -> str:
        return unicodedata.normalize(self.form, text) if self.form else text

    def ids(self, text: str) -> list:
        return self.model.encode(self.normal(text), allowed_special="all")

    def vector(self, name: str, text: str) -> dict:
        ids = self.ids(text)
        return {"tokenizer": name, "text": text, "ids": ids, "decoded": self.decoded(ids)}

    def decoded(self, ids: list) -> str:
        return self.model.decode([i for i in ids if i not in self.specials])

    def broken_vector(self, name: str, left: str, byte: int, right: str) -> dict:
        """Gives two texts around a byte that is no UTF-8: the byte is a token, and they are split each for itself."""
        ids = self.ids(left) + [self.model.encode_single_token(bytes([byte]))] + self.ids(right)
        return {"tokenizer": name, "bytes": list(left.encode() + bytes([byte]) + right.encode()), "ids": ids,
                "decoded": self.decoded(ids)}


def make_sentencepiece(name: str, kind: str, size: int, **options):
    (OUT / name).mkdir(parents=True, exist_ok=True)
    train_sentencepiece(OUT / name / "tokenizer", kind, size, **{"user_defined_symbols": ["<tool>"], **options})
    (OUT / name / "tokenizer.vocab").unlink()
    write_config(name, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True})


def write_config(name: str, config: dict):
    (OUT / name / "tokenizer_config.json").write_text(json.dumps(config) + "\n")


SPLIT = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"""
         r"""|\s*[\r\n]+|\s+(?!\S)|\s+""")
LLAMA3 = ["<|begin_of_text|>", "<|end_of_text|>"] + [f"<|reserved_special_token_{i}|>" for i in range(4)] + [
    "<|start_header_id|>", "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>"]
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|extra_0|>"]
# pat_str of tokenization_moonshot.py (moonshotai/Moonlight-16B-A3B) and of tokenization_kimi.py (moonshotai/Kimi-K2).
UPPER, LOWER = (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]")
MOONSHOT_SPLIT = "|".join([
    r"[\p{Han}]+",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
RANKS = 420
MOONSHOT = [f"<|reserved_token_{RANKS + i}|>" for i in range(256)]
MOONSHOT_NAMED = {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 9: "<think>", 254: "[UNK]", 255: "[PAD]"}
for place, special in MOONSHOT_NAMED.items():
    MOONSHOT[place] = special
MOONSHOT_KEPT = ("<think>",)
MOONSHOT_CONFIG = {
    "added_tokens_decoder": {str(RANKS + i): {"content": s, "special": s not in MOONSHOT_KEPT}
                             for i, s in MOONSHOT_NAMED.items()},
    "auto_map": {"AutoTokenizer": ["tokenization_moonshot.TikTokenTokenizer", None]},
    "bos_token": "[BOS]", "eos_token": "[EOS]", "pad_token": "[PAD]", "unk_token": "[UNK]",
    "tokenizer_class": "TikTokenTokenizer"}


def make_tiktoken(name: str, file: str, pattern: str, config: dict):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trained(t, trainers.BpeTrainer(vocab_size=RANKS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                   show_progress=False))
    spelled = {spell(b): b for b in range(256)}
    (OUT / name).mkdir(parents=True, exist_ok=True)
    ranks = sorted(t.get_vocab().items(), key=lambda item: item[1])
    (OUT / name / file).write_text("".join(
        f"{base64.b64encode(bytes(spelled[c] for c in token)).decode()} {rank}\n" for token, rank in ranks))
    write_config(name, config)


def spell(byte: int) -> str:
    """GPT-2's character of a byte (encoder.py)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return chr(byte) if byte in printable else chr(256 + [b for b in range(256) if b not in printable].index(byte))


CHARACTERS = "abcdefghijklmnopqrstuvwxyz ABC0123456789.,'!\nößéи世の🦙\u200d\u0301"


def make_characters(name: str):
    (OUT / name).mkdir(parents=True, exist_ok=True)
    write_config(name, {"char_ords": [ord(c) for c in CHARACTERS], "tokenizer_class": "CharTokenizer"})


def make_with_rules(name: str, kind: str, size: int):
    with tempfile.TemporaryDirectory() as folder:
        make_sentencepiece(name, kind, size, normalization_rule_tsv=write_rules(folder))


def make_without_bos(name: str):
    (OUT / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(OUT / "sp_bpe/tokenizer.model", OUT / name)
    write_config(name, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False})


# Tokenizers that are no tokenizer.json.
OTHER_FILES = {
    "characters": lambda: make_characters("characters"),
    "sp_unigram": lambda: make_with_rules("sp_unigram", "unigram", 420),
    "sp_bpe": lambda: make_with_rules("sp_bpe", "bpe", 380),
    "sp_no_bos": lambda: make_without_bos("sp_no_bos"),
    "sp_llama": lambda: make_sentencepiece(
        "sp_llama", "bpe", 700, byte_fallback=True, normalization_rule_name="identity", split_digits=True,
        remove_extra_whitespaces=False, allow_whitespace_only_pieces=True),
    "sp_marks": lambda: make_sentencepiece(  # as Gemma's: runs of spaces are symbols
        "sp_marks", "bpe", 380, normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, user_defined_symbols=[MARK * 2, MARK * 4, f"x{MARK}y"]),
    "sp_weighed": lambda: make_sentencepiece(  # symbols that overlap each other and likely pieces
        "sp_weighed", "unigram", 380, normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, user_defined_symbols=["the", "in", "th", "he", MARK * 2, MARK * 4]),
    "qwen": lambda: make_tiktoken("qwen", "qwen.tiktoken", SPLIT % "", {}),
    "llama3": lambda: make_tiktoken("llama3", "tokenizer.model", SPLIT % "{1,3}", {}),
    "moonshot": lambda: make_tiktoken("moonshot", "tiktoken.model", MOONSHOT_SPLIT, MOONSHOT_CONFIG)}


def make_tokenizers(only: list):
    for name, tokenizer in make_all(only).items():
        (OUT / name).mkdir(parents=True, exist_ok=True)
        compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
        (OUT / name / "tokenizer.json").write_text(compact + "\n")
    for name, make in OTHER_FILES.items():
        if not only or name in only:
            make()


def broken_vectors(name: str, side: TiktokenSide, rng: random.Random, words: list, count: int) -> list:
    pairs = [(random_text(rng, words), rng.choice(BROKEN), random_text(rng, words)) for _ in range(count)]
    return [side.broken_vector(name, *pair) for pair in pairs if side.takes(pair[0]) and side.takes(pair[2])]


def write_vectors(only: list):
    words = " ".join(corpus()).split()
    vectors = [v for v in json.loads((OUT / "vectors.json").read_text()) if only and v["tokenizer"] not in only]
    for name in sorted(d.name for d in OUT.iterdir() if d.is_dir()):
        if only and name not in only:
            continue
        rng = random.Random(name)
        side = side_of(OUT / name)
        others = ["a<|im_end|>b<|eot_id|>", "你好<think>世界'sHTMLÀb々〇[BOS]", "\ucb48\u11a7<|im_end|>\u0338"]
        others = others if name in OTHER_FILES else []
        if name.startswith("sp_"):  # cuts of one probability, and marks that the text has itself
            others += ["l" * 21, "l" * 25, "*" * 25, "XlXlXlllXlXllXXlXllXXlllllll"]
            others += ["the <tool> b", "<tool> the", " <tool>", "  <tool>  "]
            others += ["the  <tool>b<tool> ", "<tool><tool> a", "<tool"]
            others += [f" {MARK}{MARK}a", f"{MARK * 3} x y{MARK}", f"a  {MARK}  b{MARK * 5}", f"x{MARK}y  x y"]
        if name == "t5":  # marks of Unicode 17 in a character that the charsmap replaces
            others += ["e\u0301\u1acf e\u0301\u1ad0", "c e\u0301\u1add\u1ae0 e\u0301\u1aeb",
                       "e\u0301\u1ade e\u0301\u1aec"]
        if name == "sp_weighed":  # cuts whose order is that of the symbols' scores
            others += [f" the {MARK * 2}", f"hte {MARK * 4}", f"thh {MARK * 4}", f"tnt{MARK * 4} ", f"aih {MARK * 4}"]
        texts = TEXTS + others + [random_text(rng, words) for _ in range(60 if others else 30)]
        vectors += [side.vector(name, text) for text in texts if side.takes(text)]
        if isinstance(side, TiktokenSide):
            vectors += broken_vectors(name, side, rng, words, 20)
    vectors.sort(key=lambda v: v["tokenizer"])
    lines = ",\n".join(json.dumps(v, separators=(",", ":")) for v in vectors)
    (OUT / "vectors.json").write_text(f"[\n{lines}\n]\n")


class HuggingFaceSide:
    def __init__(self, path: pathlib.Path):
        self.model = Tokenizer.from_file(str(path))

    def takes(self, text: str) -> bool:
        return True

    def vector(self, name: str, text: str) -> dict:
        return vector(name, self.model, text)


class CharacterSide(HuggingFaceSide):
    """Hugging Face's words of one character: S, E, P and U (separator, end, padding, unknown), then the code points."""

    def __init__(self, code_points: list):
        tokens = [*"SEPU", *map(chr, code_points)]
        self.model = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="U"))
        self.model.pre_tokenizer = pre_tokenizers.Split(Regex("(?m:.)"), "isolated")
        self.model.decoder = decoders.Fuse()
        self.model.add_special_tokens(added(*"SEPU"))


def side_of(directory: pathlib.Path):
    """Who knows the ids of a directory's tokenizer."""
    if (directory / "tokenizer_config.json").exists():
        config = json.loads((directory / "tokenizer_config.json").read_text())
        if "char_ords" in config:
            return CharacterSide(config["char_ords"])
    if (directory / "tokenizer.json").exists():
        return HuggingFaceSide(directory / "tokenizer.json")
    if (directory / "qwen.tiktoken").exists():
        return TiktokenSide(directory / "qwen.tiktoken", SPLIT % "", QWEN, "NFC")
    if (directory / "tiktoken.model").exists():
        return TiktokenSide(directory / "tiktoken.model", MOONSHOT_SPLIT, MOONSHOT, "", MOONSHOT_KEPT)
    path = directory / "tokenizer.model"
    return SentencePieceSide(path) if path.read_bytes()[0] == 10 else TiktokenSide(path, SPLIT % "{1,3}", LLAMA3, "")


def write_random(count: int, directory: str, out: str, seed: int):
    """Records of a length and so many bytes: a text, its ids, what is decoded from these."""
    side = side_of(pathlib.Path(directory))
    rng = random.Random(seed)
    words = " ".join(corpus()).split()
    with open(out, "wb") as file:
        while count > 0:
            text = random_text(rng, words)
            rows = [side.vector("", text)] if side.takes(text) else []
            if isinstance(side, TiktokenSide) and rng.randrange(10) == 0:
                rows = broken_vectors("", side, rng, words, 1)
            for row in rows:
                packed = struct.pack(f"<{len(row['ids'])}i", *row["ids"])
                given = bytes(row["bytes"]) if "bytes" in row else row["text"].encode()
                for record in (given, packed, row["decoded"].encode()):
                    file.write(struct.pack("<I", len(record)) + record)
            count -= len(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--vectors", action="store_true")
    parser.add_argument("--random", nargs=3, metavar=("N", "DIRECTORY", "OUT"))
    parser.add_argument("--seed", type=int, default=11)
    words = parser.parse_args()
    if words.random:
        write_random(int(words.random[0]), words.random[1], words.random[2], words.seed)
    else:
        if not words.vectors:
            make_tokenizers(words.only)
        write_vectors(words.only)
