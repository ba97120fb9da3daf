"""Finds inline functions that two files define under one name. The linker silently keeps one of the two (C++'s one
definition rule). The code of one file then calls the function of the other file, or destroys its own type with the
destructor of the other file.

   doubles(["a.o", "b.o"])      ["a.cpp:4 and b.cpp:6 define twice(int)"]

nm shows the source line of a function if the object file has debug information. Object files of sanitizer builds have it.
For an implicit destructor, nm shows the wrong file but the right line, so only line numbers are compared.
"""
import re
import subprocess


def doubles(objects):
    listed = subprocess.run(["nm", "-lC", "--defined-only", *objects], stdout=subprocess.PIPE, check=True)
    places = {}
    for name, place in re.findall(r"(?m)^\w+ [Wu] (.*)\t(.*)$", listed.stdout.decode(errors="replace")):
        places.setdefault(name, {}).setdefault(place.rpartition(":")[2], place)
    return [f"{' and '.join(of_lines.values())} define {name}" for name, of_lines in places.items() if len(of_lines) > 1]
