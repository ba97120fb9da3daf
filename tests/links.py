"""Checks the links of our Markdown pages, and the file names in comments of C++ and CUDA. Each link must lead to an existing
file. If the link names a heading, the file must have this heading. A comment may leave out the first folders of a path."""
import os
import re


def without_code(page):
    return re.sub(r"(?ms)^```.*?^```$", lambda code: "\n" * code.group(0).count("\n"), page)


def anchor(heading):
    """Returns the anchor name that GitHub assigns to a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


def broken(root, file, content):
    """Yields (line, complaint) for each broken link of one page."""
    for number, line in enumerate(without_code(content).splitlines(), 1):
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"\w+:", link):
                continue
            path, _, name = link.partition("#")
            target = os.path.join(root, os.path.dirname(file), path) if path else os.path.join(root, file)
            if not os.path.exists(target):
                yield number, f"links to {path}, which does not exist"
            elif name and target.endswith(".md"):
                with open(target, encoding="utf-8") as page:
                    headings = re.findall(r"(?m)^#+ (.*)$", without_code(page.read()))
                if name not in map(anchor, headings):
                    yield number, f"links to #{name}, which is no heading of {path or file}"


def tails_of(files):
    """Returns every path by which a comment may name one of these files: base/x.hpp and x.hpp for src/base/x.hpp."""
    return {"/".join(parts[first:]) for parts in (file.split("/") for file in files) for first in range(len(parts))}


def dead_references(lines, tails):
    """Yields (line, complaint) for each file that a comment names and that does not exist. Names of scripts without a folder
    are examples, and so are names in capitals."""
    for number, line in enumerate(lines, 1):
        comment = re.search(r"//.*", line)
        for name in re.findall(r"(?<![\w./:-])(?:(?:[\w-]+/)+[\w-]+\.py|(?:[\w-]+/)*[\w-]+\.(?:hpp|cpp|cuh?|md))\b",
                               comment[0][2:] if comment else ""):
            if name not in tails and not re.search(r"[A-Z]+\.\w+$", name):
                yield number, f"names {name}, which does not exist"
