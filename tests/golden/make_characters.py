"""Prints the tables of collimate/text/newer_characters.h, or with --scripts that of collimate/text/scripts.h: where the
classes, letter cases and normal forms of Hugging Face `tokenizers` differ from those of Debian 12's PCRE2 (Unicode 14)
and utf8proc (Unicode 15), both of which it loads.

  python make_characters.py [--scripts]

Needs tokenizers 0.23.3. Prints what the tables leave open too, as comments.
"""
import argparse
import ctypes

from tokenizers import Regex, normalizers, pre_tokenizers

EVERY = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co").split()
# A stand-in is of the same one of these scripts, which patterns name; of other scripts it may not be.
SCRIPTS = ["Han", "Hiragana", "Katakana", "Hangul"]
UTF8PROC = ctypes.CDLL("libutf8proc.so.2")
PCRE2 = ctypes.CDLL("libpcre2-8.so.0")
FORMS = {"NFC": 2 | 8, "NFD": 2 | 16, "NFKC": 2 | 4 | 8, "NFKD": 2 | 4 | 16}  # utf8proc's options


def utf8proc_form(text: str, options: int) -> str:
    out = ctypes.c_char_p()
    size = UTF8PROC.utf8proc_map(text.encode(), ctypes.c_ssize_t(len(text.encode())), ctypes.byref(out), options)
    assert size >= 0
    return ctypes.string_at(out, size).decode()


def pcre2_class(pattern: str) -> set:
    """Code points that PCRE2 has in a class, with the options of collimate/text/regex.cpp."""
    PCRE2.pcre2_compile_8.restype = PCRE2.pcre2_match_data_create_8.restype = ctypes.c_void_p
    error, offset = ctypes.c_int(), ctypes.c_size_t()
    code = ctypes.c_void_p(PCRE2.pcre2_compile_8(pattern.encode(), ctypes.c_size_t(len(pattern)), 0x80000 | 0x20000,
                                                 ctypes.byref(error), ctypes.byref(offset), None))
    data = ctypes.c_void_p(PCRE2.pcre2_match_data_create_8(2, None))
    zero = ctypes.c_size_t(0)
    match = PCRE2.pcre2_match_8
    return {c for c in EVERY
            if match(code, chr(c).encode(), ctypes.c_size_t(len(chr(c).encode())), zero, 0, data, None) > 0}


def oniguruma_class(pattern: str) -> set:
    """Code points that tokenizers' patterns have in a class."""
    split, others = pre_tokenizers.Split(Regex(pattern), "removed"), set()
    for i in range(0, len(EVERY), 4096):
        for word, _ in split.pre_tokenize_str("".join(map(chr, EVERY[i:i + 4096]))):
            others.update(map(ord, word))
    return set(EVERY) - others


def categories(class_of) -> dict:
    found = {}
    for name in CATEGORIES:
        if name not in ("Cn", "Cs"):
            found.update(dict.fromkeys(class_of(r"\p{%s}" % name), name))
    return {c: found.get(c, "Cn") for c in EVERY}


def ranges(code_points) -> list:
    runs = []
    for c in sorted(code_points):
        if runs and runs[-1][1] == c - 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return runs


def shown(code_points) -> str:
    return ", ".join("{0x%X, 0x%X}" % tuple(r) for r in ranges(code_points))


def mapped(pairs: dict, step: int) -> str:
    """Runs of code points whose images are one (step 0) or go on by `step`."""
    runs = []
    for c, image in sorted(pairs.items()):
        if runs and runs[-1][1] == c - 1 and image == runs[-1][2] + step * (c - runs[-1][0]):
            runs[-1][1] = c
        else:
            runs.append([c, c, image])
    return ", ".join("{0x%X, 0x%X, 0x%X}" % tuple(r) for r in runs)


def stand_ins() -> dict:
    """A character of PCRE2's for each whose category PCRE2 has otherwise than tokenizers: of its category, length in
    UTF-8 and scripts."""
    here, there = categories(pcre2_class), categories(oniguruma_class)
    scripts = {c: [] for c in EVERY}
    for name in SCRIPTS:
        for c in oniguruma_class(r"\p{%s}" % name):
            scripts[c].append(name)
    key = {c: (there[c], len(chr(c).encode()), tuple(scripts[c])) for c in EVERY}
    first = {}
    for c in EVERY:
        if here[c] == there[c]:
            first.setdefault(key[c], c)
    return {c: first[key[c]] for c in EVERY if here[c] != there[c]}


def splits(pre_tokenizer, parts: int) -> set:
    return {c for c in EVERY if len(pre_tokenizer.pre_tokenize_str(f"a{chr(c)}b")) == parts}


def dropped(normalizer) -> set:
    return {c for c in EVERY if normalizer.normalize_str(f"a{chr(c)}b") == "ab"}


def inert() -> set:
    """Characters that tokenizers' normal forms do not know: without decomposition, order or composition there."""
    found = set()
    for form, options in FORMS.items():
        theirs = getattr(normalizers, form)()
        differs = [c for c in EVERY if theirs.normalize_str(chr(c)) != utf8proc_form(chr(c), options)]
        found.update(differs)
        for c in differs:  # what makes it up does not compose there
            found.update(ord(x) for x in utf8proc_form(chr(c), FORMS["NFD"])[1:])
    theirs = normalizers.NFD()
    for c in EVERY:
        for around in ("a\u0345%s\u0334", "a\u0334%s\u0345", "a\u0316%s", "a%s\u0316"):
            text = around % chr(c)
            if c not in found and theirs.normalize_str(text) != utf8proc_form(text, FORMS["NFD"]):
                found.add(c)
    return found


def print_classes():
    category = {c: CATEGORIES[UTF8PROC.utf8proc_category(c)] for c in EVERY}
    bert = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    theirs = {
        "kNotPunctuation": (splits(pre_tokenizers.Punctuation(), 3), ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po")),
        "kNotControl": (dropped(normalizers.BertNormalizer(**{**bert, "clean_text": True})), ("Cc", "Cf", "Co")),
        "kNotNonspacing": (dropped(normalizers.BertNormalizer(**{**bert, "strip_accents": True})), ("Mn",)),
        "kNotMark": (dropped(normalizers.StripAccents()), ("Mn", "Mc", "Me"))}
    for name, (there, kinds) in theirs.items():
        here = {c for c in EVERY if category[c] in kinds and c not in (9, 10, 13)}
        print(f"inline constexpr CodePoints {name}[] = {{{shown(here - there)}}};")
        print("// theirs alone:", shown(c for c in there - here if c >= 0x80))
    stands = stand_ins()
    print(f"inline constexpr Replacement kStandIns[] = {{{mapped(stands, 0)}}};")
    today = {c: category[stands.get(c, c)] if category[c] == "Cn" else category[c] for c in EVERY}
    numbers = splits(pre_tokenizers.Digits(individual_digits=True), 3) - {c for c in EVERY if today[c][0] == "N"}
    print(f"inline constexpr CodePoints kNewestNumbers[] = {{{shown(numbers)}}};")
    words = splits(pre_tokenizers.Whitespace(), 1)
    ours = {c for c in EVERY if today[c][0] in "LM" or today[c] in ("Nd", "Nl", "Pc")}
    print("// words, theirs alone:", shown(words - ours), "ours alone:", shown(ours - words))
    lower = normalizers.Lowercase()
    cases = {c: ord(lower.normalize_str(chr(c))) for c in EVERY
             if c != 0x130 and lower.normalize_str(chr(c)) != chr(UTF8PROC.utf8proc_tolower(c))}
    print(f"inline constexpr Replacement kNewestLower[] = {{{mapped(cases, 1)}}};")
    print(f"inline constexpr CodePoints kInert[] = {{{shown(inert())}}};")


def print_scripts():
    """Runs of code points that UnicodeScripts keeps together; those that it drops in front have no script."""
    splitter = pre_tokenizers.UnicodeScripts()
    firsts, runs = [], []
    for c in EVERY:
        if not splitter.pre_tokenize_str(chr(c)):
            continue
        near = [runs[-1][2]] if runs else []
        script = next((s for s in near + list(range(len(firsts)))
                       if len(splitter.pre_tokenize_str(firsts[s] + chr(c))) == 1), len(firsts))
        if script == len(firsts):
            firsts.append(chr(c))
        if runs and runs[-1][1:] == [c - 1, script]:
            runs[-1][1] = c
        else:
            runs.append([c, c, script])
    print(", ".join("{0x%X, 0x%X, %d}" % tuple(r) for r in runs))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", action="store_true")
    if parser.parse_args().scripts:
        print_scripts()
    else:
        print_classes()
