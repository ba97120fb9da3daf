#!/usr/bin/env python3
"""The rules for our sources, checked by `make lint`.

   tests/lint.py [ROOT]     prints one line per complaint, `file:line: what`; exits with 1 if there are any
   tests/lint.py --format   formats every source of this repository (`make format`)

   order      a C++ or CUDA file includes only from the folders that its own folder may use (docs/architecture.md); a header
              of include/ belongs to one of these folders, too
   public     a header of include/ includes only public headers and the standard library, and docs/library.md lists its names
   size       no C++ or CUDA file over 400 lines, no function in it over 80; the Makefile has at most 200 lines
   root       the root of the repository holds only the names listed below (its complaint has no line number)
   types      no type of the program has the name of one in another file, unless it is nested in a class
   opening    a header, a CUDA source or a Python file opens with a comment that says what it is
   commas     a comma never joins two statements: a debugger stops at each only if each has its own line
   columns    lines of C++, CUDA, Python and the Makefile, including comments, have at most 125 columns
   links      a link of a Markdown page leads to a file and a heading that exist, and a comment names only files that exist
              (links.py)
   spelling   American spelling only (spelling.py)
   text       no tabs (except in the Makefile), no spaces at the end of a line, one newline at the end of the file
   format     C++ and CUDA are as clang-format 14 formats them (Debian 12's version; others differ slightly and are not used)
"""
import os
import re
import shutil
import subprocess
import sys

from links import broken, dead_references, tails_of
from spelling import british

# The rooms (subfolders) of collectives/, parallel/ and experiments/, in levels. Each room may include the rooms of earlier
# levels. A file that needs a room of a later level is in the wrong room. docs/architecture.md shows the same order.
rooms = {
    "collectives": [["schedule"], ["analysis", "transport"], ["backends/mapped", "backends/message"], ["backends/near"],
                    ["backends"], ["prediction"], ["choice"], ["call"]],
    "parallel": [["pipeline"], ["layout"], ["mesh"], ["context"], ["experts"], ["step"], ["plan"], ["prediction"],
                 ["state", "generation"], ["trainer"]],
    "experiments": [["common"], ["train"], ["plan", "prove", "report"], ["bench", "compare", "launch", "show", "watch"],
                    ["commands"]],
}
# The folder whose code each public header declares. A file may include <chorale/X.hpp> if it may use that folder.
public_homes = {
    "src": ["buffer", "clock", "data", "element", "error", "ledger", "math", "named", "relative", "run", "tier_traffic"],
    "collectives": ["algorithm", "chorale", "communicator", "problem", "schedule"],
    "layers": ["model", "optimizer"],
    "parallel": ["plan", "train", "training"],
}
home_of_public = {f"chorale/{name}.hpp": home for home, names in public_homes.items() for name in names}
algorithms = ["all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "gather", "reduce", "reduce_scatter",
              "scatter"]


def below(hall, lower):
    """Returns {room: folders that it may include} for all rooms of a hall."""
    found, before = {}, list(lower)
    for level in rooms[hall]:
        found |= {f"{hall}/{room}": list(before) for room in level}
        before += [f"{hall}/{room}" for room in level]
    return found


may_include = {
    "include": [],
    "src/base": [],
    "src/memory": ["src/base"],
    "src/math": ["src/base", "src/memory"],
    "src/record": ["src/base", "src/memory"],
    "src/data": ["src/base", "src/memory"],
    "src/tier": ["src/base", "src/memory"],
    "src/simulation": ["src/base"],
    **{f"collectives/{name}": ["src", "collectives/schedule"] for name in algorithms},
    **below("collectives", ["src"]),
    "collectives": ["src"],
    "layers": ["src"],
    **below("parallel", ["src", "collectives", "layers"]),
    "parallel": ["src", "collectives", "layers"],
    **below("experiments", ["src", "collectives", "layers", "parallel"]),
    "experiments": ["src", "collectives", "layers", "parallel"],
    "examples": [],
    "tests/client": [],
    "tests": ["src", "collectives", "layers", "parallel", "experiments"],
}
at_the_root = {".ci", ".clang-format", ".editorconfig", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md",
               "LICENSE", "Makefile", "README.md", "collectives", "data", "docs", "examples", "experiments", "include",
               "layers", "packaging", "parallel", "src", "tests"}
# Sources in these folders become separate programs and are never linked with other folders.
programs_of_their_own = ("examples/", "experiments/peers/", "tests/client/", "tests/cuda/emulation/")
ours = ("src/", "collectives/", "layers/", "parallel/", "experiments/", "examples/", "tests/")
cpp = (".cpp", ".hpp", ".cu", ".cuh")
most_file_lines, most_function_lines, most_makefile_lines, most_columns = 400, 80, 200, 125


def sources(root):
    """Returns the files that git tracks or would add; without git, every file outside the folders .git, build and runs."""
    git = ["git", "-C", root, "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(git, capture_output=True, text=True) if shutil.which("git") else None
    if listed and listed.returncode == 0:
        return [f for f in listed.stdout.splitlines() if os.path.lexists(os.path.join(root, f))]
    return [os.path.relpath(os.path.join(folder, f), root) for folder, _, files in os.walk(root) for f in files
            if not re.search(r"/(build|runs|\.git)(/|$)", folder)]


def unknown_at_the_root(files):
    for name in sorted({file.split("/")[0] for file in files} - at_the_root):
        yield f"{name}: does not belong at the root of the repository; move it, or name it in tests/lint.py"


def home_of(file):
    return max((folder for folder in may_include if file.startswith(folder + "/")), key=len, default=None)


def order(file, lines):
    home = home_of(file)
    for number, line in enumerate(lines, 1):
        include = re.match(r'\s*#\s*include\s*[<"]([^">]+)[">]', line)
        if not include:
            continue
        target = include.group(1)
        ours_by_quotes = '"' in line and not target.endswith(".stamp")  # the Makefile generates .stamp files
        if ".." in target or target.startswith("/") or (ours_by_quotes and not target.startswith(ours)):
            yield number, f'includes "{target}": write paths from the root of the repository'
        if target in home_of_public and not file.startswith(programs_of_their_own):
            of = home_of_public.get(file.removeprefix("include/"), home)
            if of and home_of_public[target] not in {f.split("/")[0] for f in [of, *may_include.get(of, [])]}:
                yield number, f"{of} may not include {target}: it belongs to {home_of_public[target]}"
        if not target.startswith(ours):
            continue
        if home is None:
            yield number, f"is in no known folder, and includes {target}"
        elif not f"{target}/".startswith(tuple(f + "/" for f in [home, *may_include[home]])):
            yield number, f"{home} may not include {target}: it may include {', '.join(may_include[home]) or 'nothing else'}"


def public(root, headers):
    """Yields a complaint for each public name that docs/library.md lacks. `headers` maps each header of include/ to its
    text. Types, functions and constants of namespaces are public names."""
    page = os.path.join(root, "docs/library.md")
    if not headers or not os.path.exists(page):
        return
    with open(page, encoding="utf-8") as stream:
        listed = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", stream.read()))))
    for file, content in headers.items():
        if file.removeprefix("include/") not in home_of_public:
            yield f"{file}:1: has no home: add it to public_homes in tests/lint.py"
        for number, line in enumerate(content.splitlines(), 1):
            target = re.match(r"\s*#\s*include\s*(.*)", line)
            if target and not re.match(r"<[a-z_]+>", target.group(1)) and f"include/{target.group(1)[1:-1]}" not in headers:
                yield f"{file}:{number}: a public header may not include {target.group(1)}"
            # Declarations of a namespace begin in the first column; a forward declaration has only a name.
            kind = re.match(r"(?:struct|class|enum class|concept|using)\s+(\w+)\b(?!;)", line)
            function = re.match(r"(?!return|template)[A-Za-z][\w:<>*&\[\], ]*?[ *&](\w+)(?:\(|\[\] =)", line)
            name = kind and kind.group(1) or function and function.group(1)
            if name and name not in listed:
                yield f"{file}:{number}: docs/library.md does not document {name}"


def size(file, lines):
    if file == "Makefile" and len(lines) > most_makefile_lines:
        yield len(lines), f"{len(lines)} lines; at most {most_makefile_lines} are allowed: what can go?"
    if not file.endswith(cpp):
        return
    if len(lines) > most_file_lines:
        yield len(lines), f"{len(lines)} lines; at most {most_file_lines} are allowed: does the file hold two ideas?"
    # In formatted sources, a closing brace belongs to the last line before it with the same indent. Functions have an indent
    # of 0, or of 2 inside a class. Their signature contains a parenthesis. Namespaces, classes and enums may be long.
    for number, line in enumerate(lines, 1):
        closes = re.match(r"( {0,2})\}", line)
        if not closes or re.match(r"\}  // namespace", line):
            continue
        indent = closes.group(1)
        start = next((n for n in range(number - 1, 0, -1)
                      if re.match(re.escape(indent) + r"[^\s}#)]", lines[n - 1])
                      and not re.match(r"\s*(public|private|protected):|\s*//", lines[n - 1])), None)
        if start is None or re.match(r"\s*(namespace|struct|class|enum|union)\b", lines[start - 1]):
            continue
        if "(" in lines[start - 1] and number - start + 1 > most_function_lines:
            yield start, f"a function of {number - start + 1} lines; at most {most_function_lines} are allowed"


def opening(file, lines):
    first = next((line for line in lines if line.strip() and not line.startswith("#!")), "")
    if file.endswith((".hpp", ".cuh", ".cu")) and not first.startswith("//"):
        yield 1, "opens without a comment that says what it is"
    if file.endswith(".py") and not first.startswith('"""'):
        yield 1, "opens without a docstring that says what it is"


def columns(file, lines):
    if not file.endswith((*cpp, ".h", ".py", "Makefile")):
        return
    for number, line in enumerate(lines, 1):
        if len(line) > most_columns:
            yield number, f"{len(line)} columns; at most {most_columns} are allowed"


def commas(file, lines):
    """Finds lines such as `a = b, c = d;`. Strings are cut out first, and a sign stands for all that is in brackets."""
    place = r"(?:\+\+|--|\*)*[\w:§][\w:.§]*(?:->[\w:.§]+)*"
    acts = rf"{place}(?:\+\+|--| (?:[-+*/|&^]|<<|>>)?= [^,;]*)?"
    before = r"(?:\w[^;]*[§)] \{ |.*; )?(?:else |(?:if|while|for) (?:constexpr )?§ )*(?:case [\w:]+: )?"
    joined = re.compile(rf"\s*{before}({acts}(?:, {acts})+);(?: .*)?")
    for number, line in enumerate(lines, 1):
        bare = re.sub(r'"(?:\\.|[^"\\])*"|//.*', "", line).rstrip()
        while (shorter := re.sub(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{};]*\}", "§", bare)) != bare:
            bare = shorter
        plain = bare  # without the arguments of templates
        while (shorter := re.sub(r"<[^<>;]*>", "", plain)) != plain:
            plain = shorter
        continued = number > 1 and lines[number - 2].endswith((",", "("))  # a list that began on an earlier line
        whole = not continued and not re.search(r"[()\[\]]", bare)
        if whole and (found := joined.fullmatch(bare)) and all(re.search(r"=|\+\+|--|§$", part)
                                                               for part in found[1].split(", ")):
            yield number, "a comma joins two statements: write two"
        elif whole and re.search(r"\breturn [^;{}]*, [^;{}]*;", plain):
            yield number, "a comma joins a statement and a result: write two statements"


def text(file, lines):
    for number, line in enumerate(lines, 1):
        if "\t" in line and not file.endswith("Makefile"):
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "spaces at the end"


def spelling(file, lines):
    if file == "tests/spelling.py":
        return
    for number, line in enumerate(lines, 1):
        for word in british(line):
            yield number, f'"{word}" is British: write the American spelling'


def types_of_one_name(sources):
    """Yields a complaint for each type whose name is also used in another file. The sources are formatted, so a type outside
    of classes begins in the first column."""
    first = {}
    begins = re.compile(r"^(?:class|struct|union|enum class) (?:alignas\(\w+\) )?([A-Z]\w*)(?: final)?"
                        r"(?: ?:(?!:)[^;{]*)? \{", re.M)
    for file, source in sources:
        for found in begins.finditer(source):
            name, line = found[1], source.count("\n", 0, found.start()) + 1
            home = first.setdefault(name, file)
            if home != file:
                yield f"{file}:{line}: {home} has a type {name}, too: rename one, or nest it"


def clang_format():
    tool = shutil.which("clang-format")
    right = tool and " 14." in subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    return tool if right else None


def format_all(root):
    tool = clang_format() or sys.exit("make format needs clang-format 14: other versions format differently")
    subprocess.run([tool, "-i", *(file for file in sources(root) if file.endswith(cpp))], cwd=root, check=True)


def formatting(root, files):
    tool = clang_format()
    if not tool:
        print("format: not checked, it needs clang-format 14")
        return []
    if not files:
        return []
    result = subprocess.run([tool, "--dry-run", "-Werror", *files], cwd=root, capture_output=True, text=True)
    return [line for line in result.stderr.splitlines() if ": error:" in line]


def complaints(root):
    listed = sources(root)
    tails = tails_of(listed)
    found, program = list(unknown_at_the_root(listed)), []
    files = [f for f in listed if f.endswith((*cpp, ".h", ".py", ".md", ".toml", ".sh")) or f == "Makefile"]
    for file in files:
        with open(os.path.join(root, file), encoding="utf-8") as stream:
            content = stream.read()
        lines = content.splitlines()
        if file.endswith(cpp) and not file.startswith(programs_of_their_own):
            program.append((file, content))
        checks = [text, columns, spelling, opening, size] + ([order, commas] if file.endswith(cpp) else [])
        for check in checks:
            found += [f"{file}:{number}: {what}" for number, what in check(file, lines)]
        if file.endswith(cpp):
            found += [f"{file}:{number}: {what}" for number, what in dead_references(lines, tails)]
        if file.endswith(".md"):
            found += [f"{file}:{number}: {what}" for number, what in broken(root, file, content)]
        if content and (not content.endswith("\n") or content.endswith("\n\n")):
            found.append(f"{file}:{len(lines)}: must end with one newline")
    found += public(root, {file: content for file, content in program if file.startswith("include/")})
    found += types_of_one_name((file, content) for file, content in program if not file.startswith("tests/"))
    return found + formatting(root, [f for f in files if f.endswith(cpp)])


if __name__ == "__main__":
    if sys.argv[1:] == ["--format"]:
        sys.exit(format_all("."))
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = complaints(root)
    print("\n".join(found + [f"lint: {len(found)} complaints" if found else "lint: nothing to complain about"]))
    sys.exit(1 if found else 0)
