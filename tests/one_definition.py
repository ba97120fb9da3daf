"""Finds types and inline functions that two files define under one name. This violates C++'s one definition rule, and the
linker silently keeps one of the two definitions. The program can then destroy one file's type with the other file's
destructor, or call the other file's function.

   definitions("namespace a { struct B { enum C {}; }; inline int f(int x) {} }")   a::B, a::B::C, a::f(int)

The parser understands scopes and the text before their opening braces, but no other C++. It skips names that are local to
one file, such as those in anonymous namespaces and function bodies, and static functions. All other functions that are
defined twice are reported by the linker.
"""
import re

# Parts of a source that contain no scopes: comments, strings, raw strings, characters and preprocessor lines. (A ' can also
# separate digits.)
noise = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
                   r"|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
space = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:]*)$")
kind = re.compile(r"\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:(?:alignas\([^)]*\)|\[\[[^\]]*\]\])\s*)*"
                  r"([\w:]+(?:<.*>)?)\s*(?:final\s*)?(?::(?!:).*)?$", re.S)
function = re.compile(r"\b(?:inline|constexpr|consteval)\b.*?([\w:]+)\s*\((.*)\)[\w\s]*$", re.S)


def without_template_parameters(text):
    """`template <class T> struct X` becomes `inline struct X`. Template parameters may contain nested brackets."""
    while found := re.search(r"\btemplate\s*<", text):
        end, depth = found.end(), 1
        while depth and end < len(text):
            depth += {"<": 1, ">": -1}.get(text[end], 0)
            end += 1
        text = f"{text[:found.start()]} inline {text[end:]}"
    return text


def parameter_types(text):
    """`const A& a, int n = 3` becomes `const A&, int`. A comma inside brackets does not end a parameter."""
    while (plain := re.sub(r"([<(][^<>()]*),", r"\1;", text)) != text:
        text = plain
    bare = (re.sub(r"\s*=.*", "", parameter, flags=re.S).strip() for parameter in text.split(","))
    return ", ".join(" ".join(re.sub(r"(?<=[\s&*>])\w+$", "", parameter).split()) for parameter in bare)


def named_by(head):
    """Returns the name of a type or inline function, given the code before the opening brace of its definition. Returns
    None if the code begins something else."""
    head = without_template_parameters(head)
    if found := kind.search(head):
        return " ".join(found[1].split())
    found = function.search(head)
    return f"{found[1]}({parameter_types(found[2])})" if found and not re.search(r"\bstatic\b|=|\boperator\b",
                                                                                 head[:found.start(2)]) else None


def definitions(source):
    """Returns the types and inline functions that `source` defines with external linkage, with their lines."""
    source = noise.sub(lambda found: "\n" * found.group().count("\n"), source)
    scopes, since = [], 0  # each scope's name, or None if its contents belong to this file alone
    for mark in re.finditer(r"[{};]", source):
        head, since = source[since:mark.start()].strip(), mark.end()
        if mark.group() == "{":
            outer = space.search(head)
            name = outer[1] if outer else named_by(head)
            if name and not outer and None not in scopes:
                yield "::".join([*scopes, name]), source.count("\n", 0, mark.start()) + 1
            scopes.append(name if name and not name.endswith(")") else None)
        elif mark.group() == "}" and scopes:
            scopes.pop()


def doubles(sources):
    """Takes the (file, text) pairs of one program. Yields a complaint for each definition that is also in an earlier
    file."""
    first = {}
    for file, source in sources:
        for name, line in definitions(source):
            home, home_line = first.setdefault(name, (file, line))
            if home != file:
                yield (f"{file}:{line}: defines {name}, as {home}:{home_line} does: "
                       "rename one, share it, or put it into an anonymous namespace")
