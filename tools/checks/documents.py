"""Links of the documents: files exist, anchors name a heading, and the index of decisions has all of them in order."""
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


DECISIONS = "docs/decisions/README.md"
ENTRY = re.compile(r"(\d+)\. (?:\[.*\]\((\d{4})-\S+\.md\)|\(no page has this number\))")


def index_failures(listed: tuple, pages: list) -> list:
    """Messages of the index's lines, and the numbers of the pages that are there."""
    entries = [(number, entry) for number, line in enumerate(listed, 1) if (entry := ENTRY.match(line))]
    failures, before = [], 0
    for number, entry in entries:
        if int(entry[1]) <= before or entry[2] and int(entry[2]) != int(entry[1]):
            failures.append(Failure(DECISIONS, number, f"entry {entry[1]} stands out of order, or links another page"))
        before = int(entry[1])
    missing = sorted(set(pages) - {entry[2] for _, entry in entries})
    return failures + [Failure(DECISIONS, 1, f"page {page} is missing in the list") for page in missing]


def check_links() -> list:
    pages = [path.name[:4] for path in (ROOT / DECISIONS).parent.glob("[0-9]*.md")]
    failures = index_failures(lines(DECISIONS), pages)
    for path in files(".md"):
        fenced = False
        for number, line in enumerate(lines(path), 1):
            fenced ^= line.lstrip().startswith("```")
            for match in () if fenced else LINK.finditer(line):
                message = link_failure(path, match[1] or match[2])
                if message:
                    failures.append(Failure(path, number, message))
    return failures
