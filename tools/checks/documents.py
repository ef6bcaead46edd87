"""Links of the documents: files exist, anchors name a heading."""
import re

from checks.tree import ROOT, Failure, files, lines

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def anchors(path: str) -> set:
    """GitHub's names of the headings."""
    headings = [line.lstrip("#").strip() for line in lines(path) if re.match(r"#{1,6} ", line)]
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def link_failure(path: str, target: str) -> str:
    if re.match(r"[a-z]+:", target):
        return ""
    name, _, anchor = target.partition("#")
    full = ((ROOT / path).parent / name).resolve() if name else ROOT / path
    if not full.exists():
        return f"link to {target}: no such file"
    if ROOT not in full.parents and full != ROOT:
        return f"link to {target} leaves the repository"
    if anchor and full.suffix == ".md" and anchor not in anchors(str(full.relative_to(ROOT))):
        return f"link to {target}: no such heading"
    return ""


def check_links() -> list:
    failures = []
    for path in files(".md"):
        fenced = False
        for number, line in enumerate(lines(path), 1):
            fenced ^= line.lstrip().startswith("```")
            for match in () if fenced else LINK.finditer(line):
                message = link_failure(path, match[1] or match[2])
                if message:
                    failures.append(Failure(path, number, message))
    return failures
