"""Writes tests/golden/patterns.json: where patterns of Oniguruma's syntax match in Hugging Face's `tokenizers`.

  python make_patterns.py                  the cases of this file, made with tokenizers 0.23.3
  python make_patterns.py --random N FILE  as many random patterns, each on four random texts

A case has a text's parts where it is split at the matches ("isolated"), the matches ("matches"), and the text with <>
for each ("replaced"); without a text, all that matches in the "sample". `tokenizers` reads a case that is "refused",
and Collimate does not.
"""
import argparse
import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers


def sampled() -> str:
    """Some characters of every category of Unicode 14, and those whose case or class is unusual."""
    rng = random.Random(20)
    by_category = {}
    for c in range(0x20000):
        category = unicodedata.category(chr(c))
        if category not in ("Cs", "Cn", "Co"):
            by_category.setdefault(category, []).append(chr(c))
    chosen = {c for found in by_category.values() for c in rng.sample(found, min(6, len(found)))}
    chosen.update("²³¹¼½¾ŉſKß\u1e9e\u0130\u0131\u0345\u0363\u0c04\u0f82\u1dd3\u10fc\ua7f2\uab69\u2160\u24b6\u1e97")
    chosen.update("\u0390\u1fd3\u203f\u200d\u180e\u0085\u00a0\u3000\u2028\u2029漢字〇々αςσΣжЖ😀☃١٣ⅷⓐ$+<=>^`|~_-.")
    return "".join(sorted(chosen))


SAMPLE = sampled()
WORDS = "foo barBaz 12 quux-7\n  x_1\r\n\tEnd\n"
# Each pattern with its texts.
CASES = [
    # Lines, and the ends of the text.
    (r"^", ["a\nb\n", "", "\n\na"]), (r"$", ["a\nb\n", "a\n\nb"]), (r"^\s+", [WORDS]), (r"\s*$", ["ab  \ncd "]),
    (r"\A\w+", [WORDS]), (r"\w+\z", ["ab\ncd"]), (r"\w\Z", ["ab\n"]), (r"\s+$", [WORDS]), (r".", ["a\nb\r"]),
    (r"(?m).+", ["a\nb"]), (r"(?m:.)+", ["a\nb"]), (r"(?m)(?-m).+", ["a\nb"]), (r"(?mi-x:a.b)", ["A\nb"]),
    (r"\N+", ["a\nb\r"]), (r"\O+", ["a\nb\r"]), (r"\R", ["a\r\nb\nc\x0bd\u2028e\x85f\r"]), (r"\G\w", ["abc d"]),
    (r"a\Kb", ["abab"]), (r"a\K", ["ab"]), (r"\Kab", ["abab"]),
    # Matches of no character.
    (r"(?=[A-Z])", ["fooBarBaz", "Foo"]), (r"(?!^)(?=[A-Z])", ["HelloWorld"]), (r"\b", [WORDS, "a² b_1"]),
    (r"\B", [WORDS]), (r"a*", ["aabaac", "b", "aa"]), (r"x*", ["axxb"]), (r"", ["abc", "é"]), (r"|a", ["bab"]),
    (r"a||b", ["bab"]), (r"(?=(\d{3})+(?!\d))", ["1234567"]), (r"(?<=\d)", ["a12b"]), (r"a{0}", ["ba"]),
    (r"a{2}?b", ["b aab ab"]), (r"(?:a|)*b", ["aab"]), (r"(|a)+b", ["aab"]),
    # How often.
    (r"a{1,2}+", ["aaaaab"]), (r"a{2}?", ["aaab"]), (r"a{1,2}?", ["aaaab"]), (r"a{,2}", ["aaaab"]),
    (r"a{3,1}", ["aaaab"]), (r"a{3,1}a", ["aaaa"]), (r"a**b", ["aaab"]), (r"a{2}{2}", ["aaaaab"]),
    (r"a{,}", ["a{,}aa"]), (r"a{ 1}", ["a{ 1}aa"]), (r"{", ["a{b"]), (r"a{x", ["a{xb"]), (r"a}", ["a}"]),
    (r"a++a", ["aaa"]), (r"a?+a", ["aa", "a"]), (r"a*+a", ["aa"]), (r"(?>a+)ab", ["aaab"]), (r"a+?", ["aab"]),
    (r"a{2,}?", ["aaaab"]), (r"(ab){2}", ["ababab"]),
    # Escapes.
    (r"\h+", ["xyz09afAF g"]), (r"\H+", ["xyz09afAF g"]), (r"\v", ["a\x0bb\nc\u2028"]), (r"\pL+", ["abpLLp"]),
    (r"\Qa+\E", ["QaaE Qa+E"]), (r"\e\a\f\t\r\n", ["\x1b\x07\x0c\t\r\nz"]),
    (r"\x41\x{42}\o{103}\104\u0045", ["ABCDE"]), (r"\x4", ["\x04a"]), (r"\081", ["\x0081"]), (r"\18", ["\x018"]),
    (r"\cA\C-b\c?", ["\x01\x02\x7f"]), (r"\-\é\ \_", ["-é _"]), (r"\k\g", ["kg"]), (r"\012", ["\n"]),
    (r"\.\*\/\#", [".*/#"]), (r"\l\U\L", ["lUL"]), (r"]", ["a]"]),
    # Options hold to the end of the group, (?x) leaves spaces and comments out.
    (r"a(?i)b|c", ["ab aB b aC C ac"]), (r"(a(?i)b)c", ["aBc aBC"]), (r"(?:a(?i)b|d)c", ["aBc adc aDc dc"]),
    (r"(?i)(?-i:a)b", ["aB AB"]), (r"(?-i)a", ["Aa"]), ("(?x) a b # c\n d", ["abd a b"]), (r"(?x)a +", ["aaa a +"]),
    (r"(?x)[a b]+", ["a b"]), (r"(?x:a b)c d", ["abc d"]), (r"(?x)\ a\#", [" a#"]), ("(?x)a\x0bb", ["ab a\x0bb"]),
    ("(?x)a(?#no )b", ["ab"]), (r"a(?#no )+", ["aab"]), (r"(?#x)a", ["ba"]),
    # Groups.
    (r"(a)\1", ["aaa"]), (r"(?<n>a|b)\k<n>", ["abba"]), (r"(?'n'a)\k'n'", ["aa"]), (r"(.)(.)\k<-1>", ["abb aab"]),
    (r"(a)|\1b", ["ab"]), (r"\g<1>(a|b)", ["ab"]), (r"(?<n>a|b\g<n>c)", ["bbacc"]),
    (r"\((?:[^()]|\g<0>)*\)", ["(a(b)c)(d"]), (r"(?:(a)|b)(?(1)c|d)", ["acbdad"]),
    (r"(?:(?<n>a)|b)(?(<n>)c|d)", ["acbdad"]), (r"(?<n>x)(y)(z)\k<n>", ["xyzx"]), (r"(?<=a|bc)d", ["adbcd"]),
    (r"(?<!a)b", ["abb"]), (r"(?=a)\w", ["ba"]), (r"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10", ["abcdefghijj"]),
    # Classes.
    (r"[a-c[x-z]]", ["abxyw"]), (r"[^(\s|[.x,])]+", ["ab.x,(y|z) w"]), (r"[a[-z]]+", ["a-z"]),
    (r"[a[z-]]+", ["a-z"]), (r"[a[]b]]+", ["a]b["]), (r"[a[b]-z]+", ["ab-z"]), (r"[a[b-]z]+", ["ab-z"]),
    (r"[[a^]x]+", ["a^x"]), (r"[a[b[c-d]x]]+", ["abcdx"]), (r"[\[a[b]]+", ["[ab"]), (r"[a[\]b]]+", ["a]b"]),
    (r"[^[a]b]+", ["cabd"]), (r"[^]a[b]]+", ["c]abd"]), (r"[a[\s]]+", ["a b"]), (r"[a[^b]]+", ["ab-c"]),
    (r"[^[^a]]+", ["aab"]), (r"[a&&b]", ["ab"]), (r"[a-z&&[^aeiou]]+", ["hello"]),
    (r"[^a-z&&[aeiou]]+", ["hello12"]), (r"[a&&]+", ["a&b"]), (r"[&&a]+", ["a&b"]), (r"[a-&&-b]+", ["a-&b"]),
    (r"[&]", ["a&"]), (r"[a-w&&[^c-g]z]+", ["abcdhz"]), (r"[]a]+", ["]a b"]), (r"[^]a]+", ["]a b"]),
    (r"[\b]+", ["\x08b"]), (r"[\R\X]+", ["RX\n"]), (r"[a\Sb]+", ["ab \n"]), (r"[^\S\n]+", ["ab \n\t "]),
    (r"[\h]+", ["09g"]), (r"[\e\v]+", ["\x1b\x0bev"]), (r"[a-c-e]+", ["a-ce-d"]), (r"[--a]+", ["-.A+,b"]),
    (r"[+--]+", ["+,-.a"]), (r"[a-\x63]+", ["abcd"]), (r"[\x61-c]+", ["abcd"]), (r"[\d-]+", ["1-2"]),
    (r"[-\d]+", ["1-2"]), (r"[\w.-]+", ["a.-"]), (r"[\12\101]+", ["\n12A"]), (r"[\s\S]", ["a \n"]),
    (r"[^\W\d]+", ["a1_é"]), (r"[\P{L}5]+", ["a5 b"]), (r"[[:alpha:][5]]+", ["ab5"]), (r"[[:^alpha:]x]+", ["ab5x"]),
    (r"[^[:^alpha:]]+", ["ab5"]), (r"[[:upper:]-]+", ["aB-"]), (r"[a-z&&[:alpha:]&&[^q-t]]+", ["opqrstu"]),
    (r"[^\p{L}\p{N}]+", ["a1 ²."]), (r"[.*+?^${}()|/#~@]+", ["a.*+?^${}()|/#~@b"]),
    # Letter case.
    (r"(?i)k", ["kK\u212a"]), (r"(?i)[^k]", ["kK\u212aa"]), (r"(?i)'s", ["'\u017f'S"]),
    (r"(?i)[a-z]+", ["AZ\u212a\u017f\u0131\u0130i"]), (r"(?i:[sdmt]|ll|ve|re)", ["LLßſVe"]), (r"(?i)ss", ["ßSSs"]),
    (r"(?i)ß", ["\u1e9e ß sſ SS"]), (r"(?i)[ß]", ["\u1e9e ß sſ SS"]), (r"(?i)[^ß]+", ["ssßa"]),
    (r"(?i)sss", ["ßs sß"]), (r"(?i)ssss", ["ßß"]), (r"(?i)sß", ["ßs sß sss"]),
    (r"(?i)ffi", ["\ufb03 \ufb00i f\ufb01 FFI"]), (r"(?i)fffi", ["\ufb00\ufb01 f\ufb03"]),
    (r"(?i)\ufb00i", ["ffi \ufb03 \ufb00i"]), (r"(?i)st+", ["\ufb06 st stt"]), (r"(?i)ß+", ["ssßs"]),
    (r"(?i)\u0390", ["\u1fd3 \u0390 \u03b9\u0308\u0301"]), (r"(?i)[\u0390]", ["\u1fd3 \u0390 \u03b9\u0308\u0301"]),
    (r"(?i)\u1f80", ["\u1f88 \u1f00\u03b9 \u1f00\u0345"]), (r"(?i)\u0345", ["\u0345\u03b9\u0399\u1fbe"]),
    (r"(?i)\u0130", ["i\u0307I\u0307i"]), (r"(?i)[\p{M}]", ["\u0345\u03b9\u0399a"]), (r"(?i)\p{Lu}", ["aB"]),
    (r"(?i)[\p{Lu}]", ["aB"]), (r"(?i)[a-z&&[^aeiou]]+", ["KELVIN\u212a"]), (r"(?i)[^[^k]]+", ["kK"]),
    (r"(?i)[^\P{Lu}]+", ["aB"]), (r"(?i)ς+", ["Σσς"]), (r"(?i)\u01c4", ["\u01c5\u01c6"]),
    (r"(?i)(k)\1", ["kK\u212a"]), (r"(?i)[a-zß]$", ["ss"]),
    # Characters of one that several equal may stand in groups that hold nothing else.
    (r"(?i)s(?:s)", ["ß SSs"]), (r"(?i)(?:s)s", ["ß SSs"]), (r"(?i)(?:(?:s))s", ["ß ss"]), (r"(?i)f(?:fi)", ["\ufb03"]),
    (r"(?i)(?:f)(?:f)i", ["\ufb03 \ufb00i f\ufb01 FFI"]), (r"(?i)s(?:sx)b", ["ßxb ssxb"]),
    (r"(?i)s(?:s){1}", ["ß ss"]), (r"(?i)s{1}s", ["ß ss"]), (r"(?i)s(?:s{1,1})", ["ß ss"]),
    (r"(?ix)s (?: s )", ["ß ss"]), (r"(?i)(?:s)|xs", ["xß S"]),
    (r"(?i)s(?:\x73)", ["ß ss"]), (r"(?i)s(?:(?#y)s)", ["ß ss"]),
    (r"(?i)(s)s", ["ß ss"]), (r"(?i)s[s]", ["ß ss"]), (r"(?i:s)(?i:s)", ["ß ss"]), (r"(?i)s(?:s)+", ["ß sss"]),
    (r"(?i)(?:s){2}", ["ß ss"]), (r"(?i)s(?i)s", ["ß ss"]), (r"(?i)s(?:(?i)s)", ["ß ss"]), (r"(?i)s(?:)s", ["ß ss"]),
    (r"(?i)s(?:s){0}s", ["ß ss"]), (r"(?i)(?:s|t)s", ["ß ss"]), (r"(?i)s{1}{2}", ["ß ss"]), (r"(?i)s{1}+s", ["ß ss"]),
    (r"s(?:s)", ["ß ss"]), (r"(?i)(?>s)s", ["ß ss"]), (r"(?i)s(?:(?:s)|(?:x))", ["ß ss sx"]),
    # Patterns that models bring: GPT-2, GPT-4, o200k, Qwen 2, DeepSeek-V3 (in three), BLOOM, Falcon's digits, CLIP.
    (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
     [WORDS, "It's 12 o'clock,  isn't  it?\n\n é漢字١"]),
    (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
     r"\s*[\r\n]+|\s+(?!\S)|\s+",
     [WORDS, "IT'S 12345 o'clock,  isn't  it?\n\n é漢字١"]),
    (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|"
     r"'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|"
     r"'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
     ["CamelCase'S he'll\n 2024/11/x"]),
    (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
     r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
     [WORDS, "a.b(c) [d]\\e é̀!"]),
    (r"[一-龥぀-ゟ゠-ヿ]+", ["a漢字ひカb"]),
    (r" ?[^(\s|[.,!?…。，、।۔،])]+", ["Hello, world (a|b)."]),
    (r"[0-9][0-9][0-9]", ["a12345"]),
    (r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
     ["<|endoftext|>it's 12"]),
    # PCRE2 cannot say these.
] + [(p, None) for p in (
    r"(?~ab)", r"(*FAIL)|a", r"(?{x})a", r"(?W)a", r"(?y{g})a", r"\X", r"\y", r"\p{InBasicLatin}", r"(?<=a+)b",
    r"(?<!a{1,2})b", r"(?<=(?:a|bc)d)e", r"\M-a", r"\xC3\xA9", r"[\x80-\xff]", r"\x{41 42}", r"[a-[b]]",
    r"(a\1?){3}", r"(?<n>a)|(?<n>b)\k<n>", r"(a)\g<1>\1")]
NAMES = ("Alnum Alpha ASCII Blank Cntrl Digit Graph Lower Print Punct PosixPunct Space Upper XDigit Word Any Assigned "
         "LC L Lu Ll Lm Lo M Mn N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs C Cc Cf Letter Uppercase_Letter "
         "Close_Punctuation Mark Symbol Other Greek Grek Han Latin Cyrillic Common Hiragana Emoji Ideographic XIDS "
         "White_Space").split()
CASES += [(r"\p{%s}+" % name, [None]) for name in NAMES] + [(r"\P{^%s}+" % name, [None]) for name in ("L", "Word")]
CASES += [(r"[[:%s:]]+" % name.lower(), [None]) for name in NAMES[:15] if name != "PosixPunct"]
CASES += [(p + "+", [None])
          for p in (r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"[\w]", r"[\W]", r"[^\w]", r"\p{L u}")]


PIECES = list("abABsSkf1 \n-ßéſ") + ["ss", "ff", "st", ".", "^", "$", r"\w", r"\W", r"\d", r"\s", r"\S", r"\h", r"\b",
                                      r"\B", r"\p{L}", r"\P{Lu}", r"\p{^N}", r"\R", r"\v", r"\A", r"\z", r"\Z", r"\G"]
PAIRS = ["(?:%s)%s", "(?i:%s(?:%s))", "(?:%s|%s)", "(%s|%s)", "%s|%s", "(?i:%s)%s", "(?m:%s%s)",
         "%s(?i)%s", "(?x: %s %s )", "(?>%s%s)"]
LOOKS = ["(?=%s)", "(?!%s)", "(?<=%s)", "(?<!%s)"]
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,2}", "{,2}", "{1,}", "{1,2}?", "{2}?",
               "{1,2}+", "{2,1}"]
MEMBERS = ["a", "b", "s", "k", "A-Z", "a-f", "0-9", r"\d", r"\w", r"\s", r"\S", r"\W", r"\h", r"\p{L}", r"\P{L}",
           r"\p{Lu}", "[:alpha:]", "[:^space:]", "[:upper:]", "ß", "é", "_", r"\n", r"\-", r"\]"]


def random_pattern(rng: random.Random, depth: int = 3) -> str:
    kind = rng.randrange(12 if depth else 4)
    inner = lambda: random_pattern(rng, depth - 1)
    if kind <= 3:
        return rng.choice(PIECES + [random_class(rng) for _ in range(8)])
    if kind <= 6:
        return inner() + inner()
    if kind == 7:
        return rng.choice(PAIRS) % (inner(), inner())
    if kind == 8:
        return rng.choice(LOOKS) % (inner() if rng.random() < 0.5 else random_class(rng))
    if kind == 9:
        return "(%s)%s\\1" % (inner(), inner()) if depth == 3 else inner()
    part = "(?:%s)" % inner() if rng.random() < 0.5 else rng.choice(["a", "s", r"\w", ".", random_class(rng)])
    return part + rng.choice(QUANTIFIERS)


def random_class(rng: random.Random, depth: int = 2) -> str:
    items = [rng.choice(MEMBERS + ([random_class(rng, depth - 1)] if depth else [])) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.2:
        items.insert(rng.randint(1, len(items)), "&&")
    return "[" + rng.choice(["", "", "^"]) + "".join(items) + "]"


def random_text(rng: random.Random) -> str:
    return "".join(rng.choice("aabbABsSkKf1 \n\r-ßéſ_漢²st\u0301]") for _ in range(rng.randint(1, 14)))


def case(pattern: str, text: str) -> dict:
    split = lambda behavior, invert: [word for word, _ in pre_tokenizers.Split(Regex(pattern), behavior, invert)
                                      .pre_tokenize_str(SAMPLE if text is None else text)]
    if text is None:
        return {"pattern": pattern, "matches": "".join(split("removed", True))}
    return {"pattern": pattern, "text": text, "isolated": split("isolated", False), "matches": split("removed", True),
            "replaced": normalizers.Replace(Regex(pattern), "<>").normalize_str(text)}


def random_cases(count: int):
    rng = random.Random(count)
    while count:
        pattern = random_pattern(rng)
        try:
            Regex(pattern)
        except Exception:
            continue
        for _ in range(4):
            yield case(pattern, random_text(rng))
        count -= 1


def write(path: pathlib.Path, cases) -> None:
    lines = (json.dumps(c, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace(
        "\x85", "\\u0085") for c in cases)
    sample = json.dumps(SAMPLE)
    path.write_text('{"sample": %s,\n"cases": [\n%s\n]}\n' % (sample, ",\n".join(lines)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", nargs=2, metavar=("N", "FILE"))
    arguments = parser.parse_args()
    if arguments.random:
        return write(pathlib.Path(arguments.random[1]), random_cases(int(arguments.random[0])))
    cases = [case(p, t) for p, texts in CASES for t in texts or []]
    cases += [{"pattern": p, "refused": True} for p, texts in CASES if texts is None]
    for refused in (c["pattern"] for c in cases if "refused" in c):
        Regex(refused)
    write(pathlib.Path(__file__).with_name("patterns.json"), cases)


if __name__ == "__main__":
    main()
