"""Tests the linter. Each of its rules must report every violation and nothing else."""
import os
import re
import tempfile
import unittest

import lint


class Lint(unittest.TestCase):
    def complaints(self, **files):
        with tempfile.TemporaryDirectory() as root:
            for name, content in files.items():
                path = os.path.join(root, re.sub(r"_(hpp|cpp|md)$", r".\1", name.replace("__", "/")))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as stream:
                    stream.write(content)
            return "\n".join(c for c in lint.complaints(root) if "clang-format" not in c)

    def test_layers_may_not_know_collectives(self):
        found = self.complaints(layers__linear_cpp='#include "collectives/call/communicator.hpp"\n')
        self.assertIn("layers/linear.cpp:1: layers may not include collectives/call/communicator.hpp", found)

    def test_no_folder_looks_upwards(self):
        for home, target in [("src__base__a_cpp", "src/memory/buffer.hpp"), ("src__record__a_cpp", "experiments/x.hpp"),
                             ("collectives__a_cpp", "layers/x.hpp"), ("parallel__a_cpp", "experiments/x.hpp"),
                             ("experiments__a_cpp", "tests/x.hpp"), ("src__base__b_cpp", "../memory/x.hpp"),
                             ("collectives__analysis__a_cpp", "collectives/call/communicator.hpp"),
                             ("layers__a_cpp", "src/../collectives/x.hpp"), ("layers__b_cpp", "neighbor.hpp")]:
            self.assertNotEqual(self.complaints(**{home: f'#include "{target}"\n'}), "", (home, target))

    def test_the_order_that_is_allowed(self):
        for home, target in [("src__memory__a_cpp", "src/base/error.hpp"), ("parallel__a_cpp", "collectives/x.hpp"),
                             ("parallel__a_cpp", "layers/x.hpp"), ("experiments__a_cpp", "parallel/x.hpp"),
                             ("tests__a_cpp", "layers/x.hpp"), ("layers__a_cpp", "src/math/x.hpp"),
                             ("collectives__analysis__a_cpp", "collectives/schedule/schedule.hpp"),
                             ("collectives__a_cpp", "collectives/analysis/cost.hpp")]:
            self.assertEqual(self.complaints(**{home: f'#include "{target}"\n'}), "", (home, target))

    def test_rooms_of_a_hall_include_one_way(self):
        for hall, levels in lint.rooms.items():
            level_of = {room: number for number, level in enumerate(levels) for room in level}
            files = {f"{hall}__{home.replace('/', '__')}__to_{target.replace('/', '_')}_cpp":
                     f'#include "{hall}/{target}/x.hpp"\n' for home in level_of for target in level_of}
            found = self.complaints(**files)
            for home, level in level_of.items():
                for target in level_of:
                    allowed = level_of[target] < level or target == home or target.startswith(home + "/")
                    self.assertEqual(f"{hall}/{home} may not include {hall}/{target}/" not in found, allowed, (home, target))

    def test_public_headers_have_a_home(self):
        for home, header, allowed in [("src__base__a_cpp", "named", True), ("src__base__a_cpp", "optimizer", False),
                                      ("src__tier__a_cpp", "plan", False), ("collectives__call__a_cpp", "buffer", True),
                                      ("collectives__call__a_cpp", "model", False), ("layers__a_cpp", "model", True),
                                      ("layers__a_cpp", "train", False), ("layers__a_cpp", "problem", False),
                                      ("parallel__step__a_cpp", "communicator", True),
                                      ("parallel__step__a_cpp", "training", True), ("examples__a_cpp", "train", True)]:
            found = self.complaints(**{home: f"#include <chorale/{header}.hpp>\n"})
            self.assertEqual(f"may not include chorale/{header}.hpp" not in found, allowed, (home, header))
        found = self.complaints(include__chorale__model_hpp="// M\n#include <chorale/plan.hpp>\n")
        self.assertIn("include/chorale/model.hpp:2: layers may not include chorale/plan.hpp: it belongs to parallel", found)
        found = self.complaints(include__chorale__other_hpp="// O\n", docs__library_md="# L\n")
        self.assertIn("include/chorale/other.hpp:1: has no home", found)

    def test_comments_name_files_that_exist(self):
        for comment, dead in [("see b.hpp", ""), ("see layers/b.hpp, or my.py", ""), ("in tests/TARGET.cpp", ""),
                              ("see docs/c.md", "docs/c.md"), ("(parallel/b.hpp)", "parallel/b.hpp"), ("b.cpp.", "b.cpp"),
                              ("as tests/x.py does", "tests/x.py")]:
            found = self.complaints(layers__a_cpp=f"int x;  // {comment}\n", layers__b_hpp="// b\n")
            self.assertEqual(found, f"layers/a.cpp:1: names {dead}, which does not exist" if dead else "", comment)

    def test_an_algorithm_knows_only_schedules(self):
        self.assertEqual(self.complaints(collectives__all_reduce__a_cpp='#include "collectives/schedule/x.hpp"\n'), "")
        self.assertIn("may not include",
                      self.complaints(collectives__all_reduce__a_cpp='#include "collectives/call/x.hpp"\n'))

    def test_long_files_and_functions(self):
        self.assertIn("401 lines", self.complaints(src__base__a_cpp="int x;\n" * 401))
        body = "  call();\n" * 79
        self.assertIn("a function of 81 lines", self.complaints(src__base__a_cpp=f"int f(int x) {{\n{body}}}\n"))
        self.assertEqual(self.complaints(src__base__a_cpp=f"int f(int x) {{\n{body[:-len('  call();' ) - 1]}}}\n"), "")
        wrapped = "int f(int x,\n      int y) {\n" + body + "}\n"
        self.assertIn("a function of 82 lines", self.complaints(src__base__a_cpp=wrapped))
        constructor = "S::S(int a)\n    : a_(a) {\n" + body + "}\n"
        self.assertIn("a function of 82 lines", self.complaints(src__base__a_cpp=constructor))
        names = "struct S {\n" + "  int x;\n" * 90 + "};\nnamespace {\n" + "int y;\n" * 90 + "}\n"
        self.assertEqual(self.complaints(src__base__a_cpp=names), "")
        method = "struct S {\n  void run(int a) const {\n" + "  " + body.replace("\n", "\n  ") + "}\n};\n"
        self.assertIn("a function of 81 lines", self.complaints(src__base__a_cpp=method))

    def test_openings_and_stray_white_space(self):
        self.assertIn("opens without a comment", self.complaints(src__base__a_hpp="#pragma once\n"))
        self.assertIn("a tab", self.complaints(src__base__a_cpp="int\tx;\n"))
        self.assertIn("spaces at the end", self.complaints(src__base__a_cpp="int x; \n"))
        self.assertIn("one newline", self.complaints(src__base__a_cpp="int x;"))

    def test_links_lead_somewhere(self):
        pages = {"docs__a_md": "# The first\n\n## `make` and *more*\n\n[b](b.md#how-it-is-built) [web](https://x.org/#y)\n",
                 "docs__b_md": "# How it is built\n\n[up](../docs/a.md) [here](#how-it-is-built) [a](a.md#make-and-more)\n"}
        self.assertEqual(self.complaints(**pages), "")
        for wrong, says in [("[x](c.md)", "docs/b.md:5: links to c.md, which does not exist"),
                            ("[x](a.md#second)", "docs/b.md:5: links to #second, which is no heading of a.md"),
                            ("[x](#the-first)", "docs/b.md:5: links to #the-first, which is no heading of docs/b.md")]:
            self.assertIn(says, self.complaints(**{**pages, "docs__b_md": pages["docs__b_md"] + f"\n{wrong}\n"}))
        code = "```\n# not a heading\n[x](nowhere.md)\n```\n"
        self.assertEqual(self.complaints(docs__b_md="# B\n\n" + code), "")
        self.assertIn("#not-a-heading", self.complaints(docs__b_md=code + "[x](#not-a-heading)\n"))

    def test_no_line_has_more_than_125_columns(self):
        for name, comment in [("cpp", "// "), ("hpp", "// "), ("cu", "// "), ("h", "// "), ("py", '"""x"""  # ')]:
            longest = comment.ljust(124, "x") + "µ"  # 125 columns, 126 bytes
            found = self.complaints(**{f"src__base__a.{name}": f"{longest}\n{longest}x\n"})
            self.assertEqual(found, f"src/base/a.{name}:2: 126 columns; at most 125 are allowed")
        self.assertEqual(self.complaints(docs__a_md="x" * 126 + "\n"), "")
        self.assertEqual(self.complaints(Makefile="#" * 126 + "\n"), "Makefile:1: 126 columns; at most 125 are allowed")

    def test_the_makefile_has_at_most_200_lines(self):
        self.assertEqual(self.complaints(Makefile="#\n" * 200), "")
        self.assertIn("Makefile:201: 201 lines", self.complaints(Makefile="#\n" * 201))

    def test_one_spelling(self):
        words = ["neighb" + "our_of", "col" + "ours", "initial" + "ise", "Normal" + "ised", "label" + "led", "cent" + "re"]
        for name in ["src__base__a_cpp", "docs__a_md", "tests__a.py"]:
            for word in words:
                found = self.complaints(**{name: f'"""a"""\n# {word}(x)\n' if name.endswith("py") else f"// {word}(x)\n"})
                self.assertIn(f'"{word}" is British', found)
        for word in ["neighbor", "colored", "initialize", "parallelism", "realistic", "analyses", "centered", "otherwise",
                     "PMPI_Test_" + "cancel" + "led", "four", "hours", "your"]:
            self.assertEqual(self.complaints(docs__a_md=f"{word}\n"), "", word)

    def test_no_comma_joins_two_statements(self):
        for line in ["a = 1, b = 2;", "if (x) a.b = f(1, 2), ++n;", "f(a), g(b);",
                     "void wait() { pass(now), waits_ = false; }", "for (int i : all) sum += i, ++count;",
                     "ranks[i] += x, page->n++;", 'write("a, b"), close();']:
            found = self.complaints(src__base__a_cpp=f"void f() {{\n  {line}\n}}\n")
            self.assertIn("src/base/a.cpp:2: a comma joins two statements", found, line)
        for line in ["return a = 1, b;", "return p->n += f(1, 2), *this;", "auto set = [&] { return a.b[1] = 2, true; };",
                     "return f(a), b;"]:
            found = self.complaints(src__base__a_cpp=f"int f() {{\n  {line}\n}}\n")
            self.assertIn("src/base/a.cpp:2: a comma joins a statement and a result", found, line)
        for line in ["int a = 1, b = 2;", "double a = 1, b = f(2);", "for (int i = 0, j = 1; i < 2; ++i, ++j) f();",
                     "f(a, g(b));", "a, b, c;", "std::map<int, int> a{{1, 2}};",
                     'require(x == y, "{}, {}", x, y);', "A(int b) : b_(b), c_(b) {}",
                     "call(a,\n       b = 2, c = 3);", "double a = 1,\n         b = 2, c = 3;", "const auto [a, b] = f();",
                     "return {.a = 1, .b = 2};", "return std::pair<int, int>(a, b);",
                     "return std::map<int, std::pair<int, int>>(a);",
                     "return [a = 1, b = 2] { return a; };"]:
            self.assertEqual(self.complaints(src__base__a_cpp=f"void f() {{\n  {line}\n}}\n"), "", line)

    def test_nothing_unknown_stands_at_the_root(self):
        self.assertEqual(self.complaints(**{"data__README.md": "# Data\n", "Makefile": "all:\n"}), "")
        found = self.complaints(**{"latest": "", "step-30__manifest.json": "{}", "Makefile": "all:\n"})
        self.assertIn("latest: does not belong at the root", found)
        self.assertIn("step-30: does not belong at the root", found)

    def test_no_type_has_the_name_of_one_in_another_file(self):
        for what in ["struct Part {\n  int a;\n};", "class Part final : public Base {\n};",
                     "enum class Part : int { one };",
                     "struct alignas(64) Part {\n};", "template <class T>\nstruct Part {\n};",
                     "struct Part : A,\n    B {\n};"]:
            found = self.complaints(src__base__a_cpp=f"namespace chorale {{\nnamespace {{\n\n{what}\n\n}}\n}}\n",
                                    layers__a_cpp=f"namespace chorale::b {{\n\n{what}\n\n}}\n")
            self.assertRegex(found, r"/a.cpp:\d: \S+ has a type Part, too", what)
        one = "struct Part {\n};\n"
        self.assertEqual(self.complaints(src__base__a_cpp="namespace {\n" + one + "}\n", tests__a_cpp=one), "")
        for other in ["struct Part;\n", "struct A {\n  struct Part {\n  };\n};\n", "using Part = int;\n"]:
            self.assertEqual(self.complaints(src__base__a_cpp="namespace {\n" + one + "}\n", layers__a_cpp=other), "", other)


if __name__ == "__main__":
    unittest.main()
