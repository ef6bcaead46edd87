"""File-local names of a folder: eight of its sources are compiled at once, and any two of them may meet."""
import re

from checks.lint import STRING
from checks.tree import Failure, files, lines

# Sources that are compiled one by one: cmake/programs.cmake, cmake/modules.cmake, and those for an instruction set.
ALONE = re.compile(r"^bench/[^/]*$|/main\.cpp$|_(avx2|avx512|avx512bf16|amx|avx2tiles)\.cpp$")
TARGET = re.compile(r"^(collimate/\w+|tests/support/\w+|\w+/\w+)/")
NAMESPACE = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{")
TEMPLATE, WORDS = r"^(?:template <.*>\s*)?", r"(?:\[\[\w+\]\] )?(?:(?:static|inline|constexpr|const|thread_local) )*"
ALIAS = re.compile(r"^(?:using|namespace) (\w+) = ")
TYPE = re.compile(TEMPLATE + r"(?:class|struct|enum class|enum|union) (?:alignas\(\w+\) )?(\w+)\b(?!.*;$)")
FUNCTION = re.compile(TEMPLATE + WORDS + r"[\w:<>,*& ]+?[ *&](\w+)\((.*)")
VALUE = re.compile(r"^" + WORDS + r"[\w:<>,*& ]+?[ *&](\w+)(?:\[\w*\])*(?: =|\{|;)")
NO_NAMES = re.compile(r"^(?:using \w+::|using namespace|TEST|INSTANTIATE|[}#/ ])")


def target_of(path: str) -> str:
    """The program or library that the source is compiled into: tests of a folder are one, its other sources another."""
    found = TARGET.match(path)
    return (found[1] if found else path) + (" (tests)" if path.endswith("_test.cpp") else "")


def types_in(parameters: str) -> str:
    """The types of a function's parameters, which tell it from another of its name; a call may leave defaults out."""
    inside = parameters.split(") {")[0].split(");")[0].rstrip(")")
    return ",".join(re.sub(r"\b\w+$", "", part.strip()).strip() for part in inside.split(",") if " = " not in part)


def defined_in(code: str, after: str):
    """(name, what tells two of that name apart) of the definition that begins in a line; None where none does."""
    if alias := ALIAS.match(code):
        return alias[1], code  # twice the same one is allowed
    if named := TYPE.match(code):
        return named[1], ""
    if function := FUNCTION.match(code):
        return function[1], types_in(function[2] + ("" if code.endswith(("{", ";", "}")) else after))
    if value := VALUE.match(code):
        return value[1], ""
    return None


def local_names(text: tuple) -> list:
    """(line, the namespaces around it, name, what tells it apart) of what stands in a nameless namespace."""
    stack, names = [], []
    for number, line in enumerate(text, 1):
        opened = NAMESPACE.match(line)
        if opened and not line.rstrip().endswith("}"):
            stack.append(opened[1] or "")
        elif line.startswith("}  // namespace") and stack:
            stack.pop()
        elif "" in stack and not NO_NAMES.match(line):
            code = STRING.sub('""', line).split("//")[0].rstrip()
            after = " ".join(more.strip() for more in text[number:number + 5])
            if found := defined_in(code, " " + after):
                names.append((number, "::".join(name for name in stack if name), *found))
    return names


def collide(one: str, other: str) -> bool:
    """Aliases do when they differ, functions when they do not, all else always."""
    return one != other if " = " in one + other else one == other or "" in (one, other)


def equal_names(paths: list, read=lines) -> list:
    """A failure for each file-local name that an earlier source of the same target has too."""
    seen, failures = {}, []
    for path in paths:
        for number, space, name, kind in local_names(read(path)):
            earlier = seen.setdefault((target_of(path), space, name), [])
            other = next((at for at, its_kind in earlier if at != path and collide(kind, its_kind)), None)
            if other:
                failures.append(Failure(path, number, f"{name} stands in a nameless namespace of {other} too, and the "
                                                      "two may be compiled as one; share it or name it otherwise"))
            earlier.append((path, kind))
    return failures


def check_names() -> list:
    return equal_names([path for path in files(".cpp") if not ALONE.search(path)])
