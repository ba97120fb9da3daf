"""Finds inline functions that two files define under one name. The linker silently keeps one of the two (C++'s one
definition rule). The program then calls the other file's function, or destroys one file's type with the other file's
destructor.

   doubles(["a.o", "b.o"])      ["a.cpp:4 and b.cpp:6 define twice(int)"]

nm knows where a function was defined if its object has debug information, as those of the sanitizers do. For an implicit
destructor it names the wrong file but the right line, so only lines are compared.
"""
import re
import subprocess


def doubles(objects):
    listed = subprocess.run(["nm", "-lC", "--defined-only", *objects], stdout=subprocess.PIPE, check=True)
    places = {}
    for name, place in re.findall(r"(?m)^\w+ [Wu] (.*)\t(.*)$", listed.stdout.decode(errors="replace")):
        places.setdefault(name, {}).setdefault(place.rpartition(":")[2], place)
    return [f"{' and '.join(of_lines.values())} define {name}" for name, of_lines in places.items() if len(of_lines) > 1]
