"""Checks the links of our Markdown pages. Each link must lead to an existing file, and to an existing heading of that
file."""
import os
import re


def without_code(page):
    return re.sub(r"(?ms)^```.*?^```$", lambda code: "\n" * code.group(0).count("\n"), page)


def anchor(heading):
    """Returns the anchor that GitHub gives a heading."""
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
