"""Rules of style that a line, or the shape of a file, can break."""
import re

from checks.tree import CODE, Failure, files, lines

LINE_RULES = [  # endings, pattern, message
    (CODE, r"(?<![\w.>:])(std::|::)?(quick_)?exit\s*\(", "exit() ends the caller's process; throw an error"),
    ((".h", ".cuh"), r"^\s*using namespace\b", "`using namespace` in a header"),
    (CODE + (".py", ".sh", ".md"), r"\b(TODO|FIXME|XXX)\b|[Nn]ot (yet )?implemented|[Uu]nimplemented",
     "unfinished by its own words"),
    (CODE, r"EXPECT_TRUE\(true\)|GTEST_SKIP\(\);", "a test that cannot fail, or a skip without a reason"),
    (CODE, r"catch \(\.\.\.\) \{\s*\}", "an error is swallowed"),
    ((".h", ".cpp", ".cc"), r"\bstd::(cout|cerr)\b", "print through base/log.h, or in cli/ through its own output"),
    (CODE, r"\bfor \(.* : .*\)\.span\(\)\)", "the loop reads a span whose view is closed; loop over the view itself"),
    (CODE + (".py", ".sh", ".md"), r"\s+$", "trailing white space"),
]
SCRIPTS = (".py", ".sh", ".cmake")
NAMELESS = re.compile(r'(?:^|\s)(//|#|""")\s*(?:What|Of|The same|This does the same|That of|Those|Its?|They|Theirs?|'
                      r'Them|Likewise)\b')
LIMITS = {".h": 400, ".cpp": 400, ".cc": 400, ".inc": 400, ".cu": 400, ".py": 400, "README.md": 120}
FUNCTION_LIMIT, TEST_LIMIT = 40, 60
STRING = re.compile(r'"(\\.|[^"\\])*"')
OPENS = re.compile(r"^( {0,2})(?!namespace|class |struct |enum |union |extern|#|//|\}|template|constexpr \w+ k)\S.*\{$")


def code_of(line: str) -> str:
    """The line without string literals and // comments, so that prose is not taken for code."""
    return STRING.sub('""', line).split("//")[0]


def exempt(path: str, message: str) -> bool:
    """Programs may print; a test's child process may exit."""
    if message.startswith("print through"):
        return path.startswith(("collimate/cli/", "bench/", "tests/"))
    return message.startswith("exit()") and path.endswith("_test.cpp")


def nameless(before: str, line: str, script: bool) -> bool:
    """Whether a comment begins in this line, and with a word that leaves open what it is about."""
    found = NAMELESS.search(line if script else STRING.sub('""', line))
    if not found or found[1] == '"""' or before.startswith("#!"):
        return bool(found)
    return not all(at.lstrip().startswith(found[1]) for at in (before, line))  # it goes on with the line before


def nameless_comments(path: str) -> list:
    message = "a comment begins with What, Of, Those, Its or It; name its subject or say what it does"
    pairs = zip(("", *lines(path)), lines(path))
    return [Failure(path, number, message) for number, (before, line) in enumerate(pairs, 1)
            if nameless(before, line, path.endswith(SCRIPTS))]


def check_lines() -> list:
    failures = [failure for path in files(*CODE, *SCRIPTS) for failure in nameless_comments(path)]
    for endings, pattern, message in LINE_RULES:
        rule = re.compile(pattern)
        prose = "own words" in message or "white space" in message
        for path in files(*endings):
            if path.startswith("tools/checks/") or exempt(path, message):
                continue
            failures += [Failure(path, number, message) for number, line in enumerate(lines(path), 1)
                         if rule.search(line if prose else code_of(line))]
    return failures


def check_shape() -> list:
    failures = []
    for ending, limit in LIMITS.items():
        failures += [Failure(path, limit, f"{len(lines(path))} lines, at most {limit}; which second idea hides inside?")
                     for path in files(ending) if len(lines(path)) > limit]
    for path in files(".h", ".cuh"):
        if not any(line == "#pragma once" for line in lines(path)[:30]):
            failures.append(Failure(path, 1, "no #pragma once"))
    for path in files(".py"):
        failures += [Failure(path, number, f"{len(line)} columns, at most 120")
                     for number, line in enumerate(lines(path), 1) if len(line) > 120]
    failures += [Failure(path, 1, "begins with a dash: a program took an option for the name of its output")
                 for path in files("") if path.startswith("-")]
    return failures


def check_functions() -> list:
    """Bodies over the limit, found by indentation: the formatter puts a body's last brace under its first letter."""
    failures = []
    for path in files(".h", ".cpp", ".cc", ".inc", ".cu"):
        limit = TEST_LIMIT if path.endswith("_test.cpp") or path.startswith(("tests/", "bench/")) else FUNCTION_LIMIT
        start, indent = 0, ""
        for number, line in enumerate(lines(path), 1):
            opening = OPENS.match(line)
            if opening and "(" in line and not start:
                start, indent = number, opening[1]
            elif start and re.match(rf"{indent}\}}", line):
                if number - start + 1 > limit:
                    failures.append(Failure(path, start, f"function of {number - start + 1} lines, at most {limit}"))
                start = 0
    return failures
