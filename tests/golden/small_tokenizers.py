"""Small tokenizers of every kind that Hugging Face's `tokenizers` trains, on the repository's documentation."""
import json
import pathlib
import tempfile

import sentencepiece
import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MARK = "\u2581"
WORLD = """Größe über Straße naïve café; Ελλάδα και Θεσσαλονίκη, Москва и Владивосток. שלום עולם. مرحبا بالعالم 123٤٥.
你好，世界。日本語のテキストとカタカナ。한국어 텍스트입니다. नमस्ते दुनिया। สวัสดีชาวโลก
🦙👩‍👩‍👧‍👦 🇩🇪 e\u0301a\u0308 ﬁ ② Ⅷ ½ ㍿ ｶﾞ Ａ１
def f(x): return [x ** 2 for _ in range(10)]  # it's the cat's, don't we'll I'm they've
"""
# Replacements of a small charsmap.
RULES = [("ﬁ", "fi"), ("Ａ", "A"), ("１", "1"), ("②", "2"), ("Ⅷ", "VIII"), ("ｶﾞ", "ガ"), ("ｶ", "カ"), ("㍿", "株式会社"),
         ("\u200b", " "), ("\xa0", " "), ("e\u0301", "é"), ("\u0301", "")]


def hexadecimal(text: str) -> str:
    return " ".join("%X" % ord(c) for c in text)


def corpus() -> list:
    files = sorted(ROOT.glob("docs/*.md"))[:6] + [ROOT / "README.md"]
    return [line for f in files for line in f.read_text().splitlines()] + WORLD.splitlines() * 4


def added(*names: str, **options) -> list:
    return [tokenizers.AddedToken(n, special=True, normalized=False, **options) for n in names]


def write_rules(folder: str) -> str:
    rules = pathlib.Path(folder) / "rules.tsv"
    rules.write_text("".join(f"{hexadecimal(a)}\t{hexadecimal(b)}\n" for a, b in RULES))
    return str(rules)


def small_charsmap() -> bytes:
    """A table of a few rules alone, to be small in the repository."""
    with tempfile.TemporaryDirectory() as folder:
        train_sentencepiece(pathlib.Path(folder) / "m", "unigram", 300, normalization_rule_tsv=write_rules(folder))
        return proto(pathlib.Path(folder) / "m.model").normalizer_spec.precompiled_charsmap


def proto(path: pathlib.Path):
    from sentencepiece import sentencepiece_model_pb2
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(path.read_bytes())
    return model


def train_sentencepiece(prefix: pathlib.Path, kind: str, size: int, **options):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_prefix=str(prefix), model_type=kind, vocab_size=size,
        hard_vocab_limit=False, num_threads=1, minloglevel=2, **options)


def trained(tokenizer: Tokenizer, trainer) -> Tokenizer:
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def unigram_trainer(size: int, special: list) -> trainers.UnigramTrainer:
    return trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False)


def make_t5(size: int) -> Tokenizer:
    """As T5 and XLM-RoBERTa: a charsmap, words by white space, each with a mark."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([
        normalizers.Precompiled(small_charsmap()), normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), MARK)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    trained(t, unigram_trainer(size, added("<unk>", "</s>", "<mask>", lstrip=True)))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return t


def make_unigram_bytes(size: int) -> Tokenizer:
    """Unigram with byte fallback over a whole text; no word is cut before the model."""
    t = make_t5(size)
    pieces = json.loads(t.to_str())["model"]["vocab"]
    pieces = [(p, s) for p, s in pieces if p not in ("</s>", "<mask>")]
    pieces += [(f"<0x{b:02X}>", -12.0) for b in range(256)]
    t = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(" ", MARK)])
    t.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_special_tokens(added("<s>", "</s>"))
    t.add_tokens([tokenizers.AddedToken("<tool>", normalized=True)])
    return t


def make_bert(size: int) -> Tokenizer:
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trained(t, trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def make_clip(size: int) -> Tokenizer:
    """As CLIP: byte-level with an end of word."""
    t = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed",
                             invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    trained(t, trainers.BpeTrainer(vocab_size=size, special_tokens=["<|startoftext|>", "<|endoftext|>"],
                                   end_of_word_suffix="</w>", initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                   show_progress=False))
    t.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), add_prefix_space=False, trim_offsets=False)
    return t


def make_gpt1(size: int) -> Tokenizer:
    """As OpenAI GPT: characters with an end of word, decoded with a space there."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=True))
    t.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=None, lowercase=True)
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)])
    t.decoder = decoders.BPEDecoder(suffix="</w>")
    return trained(t, trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", "<s>"], end_of_word_suffix="</w>",
                                          show_progress=False))


def make_prefixed(size: int) -> Tokenizer:
    """BPE with a prefix inside words; its decoder strips every token."""
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit(" "),
                                               pre_tokenizers.Punctuation("merged_with_previous")])
    t.decoder = decoders.Sequence([decoders.WordPiece(cleanup=False), decoders.Replace(Regex("[aeiou]+$"), "_"),
                                   decoders.Fuse(), decoders.Strip(" ", 2, 0)])
    return trained(t, trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>"], continuing_subword_prefix="##",
                                          show_progress=False))


def make_falcon(size: int) -> Tokenizer:
    """As Falcon: what comes after ByteLevel sees bytes in their spelling."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    t.decoder = decoders.ByteLevel()
    trained(t, trainers.BpeTrainer(vocab_size=size, special_tokens=["<|endoftext|>"],
                                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_tokens([tokenizers.AddedToken("<tool>", normalized=False, rstrip=True)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])])
    return t


def make_bloom(size: int) -> Tokenizer:
    """As BLOOM: its pattern has a class inside of a class."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r" ?[^(\s|[.,!?…。，、।۔،])]+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    return trained(t, trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", "<s>", "</s>", "<pad>"],
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))


def make_fallback(size: int) -> Tokenizer:
    """Byte fallback and a split by a text; without a decoder tokens are joined with spaces."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    t.pre_tokenizer = pre_tokenizers.Split(MARK, "merged_with_previous")
    return trained(t, trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>"] + [f"<0x{b:02X}>" for b in range(256)], show_progress=False))


def make_words(size: int) -> Tokenizer:
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
                                               pre_tokenizers.Split("-", "merged_with_next"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)])
    t.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    return trained(t, trainers.WordLevelTrainer(vocab_size=size, special_tokens=["<unk>"], show_progress=False))


def split_later(size: int, steps: list) -> Tokenizer:
    """Byte-level BPE trained on lines that nothing splits, so that its ids tell where `steps` split."""
    t = Tokenizer(models.BPE())
    spelling = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t.pre_tokenizer = spelling
    t.decoder = decoders.ByteLevel()
    trained(t, trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                   show_progress=False))
    t.pre_tokenizer = pre_tokenizers.Sequence([*steps, spelling])
    return t


def make_few_bytes(size: int, special: tuple = (), **options) -> Tokenizer:
    """As SmolLM2: byte-level, without tokens for the bytes that the training text lacks."""
    t = Tokenizer(models.BPE(**options))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return trained(t, trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=150,
                                          special_tokens=["<unk>", *special]))


def make_few_bytes_unk(size: int) -> Tokenizer:
    return make_few_bytes(size, unk_token="<unk>", fuse_unk=True)


def make_few_bytes_fallback(size: int) -> Tokenizer:
    """Byte fallback concerns the spelling of the byte: "ì" of 0xEC is <0xC3><0xAC>."""
    return make_few_bytes(size, tuple(f"<0x{b:02X}>" for b in range(0xA0, 0x100)), unk_token="<unk>",
                          byte_fallback=True)


def make_spelled(size: int) -> Tokenizer:
    """Bytes are spelled before anything splits the text."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.ByteLevel()
    t.pre_tokenizer = pre_tokenizers.Split(Regex("\u0120?[^\u0120]+"), "isolated")
    t.decoder = decoders.ByteLevel()
    return trained(t, trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                          show_progress=False))


def make_scripts(size: int) -> Tokenizer:
    return split_later(size, [pre_tokenizers.UnicodeScripts()])


def make_fixed_length(size: int) -> Tokenizer:
    return split_later(size, [pre_tokenizers.Punctuation(), pre_tokenizers.FixedLength(3)])


def make_all(only: list, scale: int = 1) -> dict:
    """All tokenizers, or those of `only`, by name."""
    makers = {"t5": (make_t5, 500), "unigram_bytes": (make_unigram_bytes, 450), "bert": (make_bert, 300),
              "clip": (make_clip, 620), "gpt1": (make_gpt1, 400), "prefixed": (make_prefixed, 400),
              "falcon": (make_falcon, 340), "fallback": (make_fallback, 500), "word_level": (make_words, 300),
              "bloom": (make_bloom, 400),
              "spelled": (make_spelled, 320), "scripts": (make_scripts, 500), "fixed_length": (make_fixed_length, 500),
              "few_bytes": (make_few_bytes, 400), "few_bytes_unk": (make_few_bytes_unk, 400),
              "few_bytes_fallback": (make_few_bytes_fallback, 400)}
    return {name: make(size * scale) for name, (make, size) in makers.items() if not only or name in only}
