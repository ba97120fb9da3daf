"""Tests that no two files define an inline function under one name. Duplicates in generated sources must be found, and the
object files of a sanitizer build must have none."""
import glob
import os
import tempfile
import unittest

from one_definition import doubles
from programs import build, start, thorough

head = "#include <string>\ninline int shared(int x) { return 3 * x; }\n"


class OneDefinition(unittest.TestCase):
    def found(self, **sources):
        """Returns the complaints about these sources, compiled with debug information as in a sanitizer build."""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/head.hpp", "w") as file:
                file.write(head)
            for name, text in sources.items():
                with open(f"{folder}/{name}.cpp", "w") as file:
                    file.write(f'#include "head.hpp"\n{text}')
                compiled = start(["g++", "-O1", "-g", "-c", f"{name}.cpp"], folder=folder)
                self.assertEqual((compiled.returncode, compiled.stderr), (0, ""))
            return [complaint.replace(os.path.realpath(folder) + "/", "") for complaint in
                    doubles([f"{folder}/{name}.o" for name in sources])]

    def test_what_two_files_define_is_found(self):
        twice = "inline int twice(int x) {{ return {}; }}\nint (*use)(int) = &twice;\n"
        self.assertEqual(self.found(a=twice.format("2 * x"), b="\n" + twice.format("x << 1")),
                         ["a.cpp:2 and b.cpp:3 define twice(int)"])
        part = "struct Part {{ virtual ~Part() = default; {} x; }};\nPart part;\n"
        found = self.found(a=part.format("std::string"), b="\n" + part.format("int"))
        self.assertIn("a.cpp:2 and b.cpp:3 define Part::~Part()", found)

    def test_what_a_header_defines_is_no_double(self):
        both = "int (*use)(int) = &shared;\n"
        self.assertEqual(self.found(a=both, b="\n\n" + both), [])
        private = "namespace {\ninline int twice(int x) { return 2 * x; }\n}\nint (*use)(int) = &twice;\n"
        self.assertEqual(self.found(a=private, b="\n" + private.replace("2 * x", "x << 1")), [])

    @unittest.skipUnless(thorough, "make test-all builds with sanitizers")
    def test_the_program_and_its_tests_have_no_doubles(self):
        folder = f"{build}/thread" if build == "build" else f"{build}-thread"  # as B in the Makefile
        objects = glob.glob(f"{folder}/**/*.o", recursive=True)
        self.assertGreater(len(objects), 100)
        self.assertEqual(doubles(objects), [])


if __name__ == "__main__":
    unittest.main()
