"""Runs src/bundles.awk on small sources. Checks which files it bundles into one compilation and which it keeps separate."""
import os
import subprocess
import tempfile
import unittest


class Bundles(unittest.TestCase):
    def sorted(self, sources, most=1000):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in sources.items():
                os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
                with open(f"{folder}/{name}", "w") as file:
                    file.write(text)
            result = subprocess.run(["awk", "-v", f"most={most}", "-f", os.path.abspath("src/bundles.awk"), *sources],
                                    cwd=folder,
                                    capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return {file: bundle for bundle, file in (line.split(":") for line in result.stdout.splitlines())}

    def test_files_of_a_folder_go_together_until_the_bundle_is_full(self):
        found = self.sorted({"parallel/a.cpp": "x" * 599 + "\n", "parallel/pipeline/b.cpp": "x" * 599 + "\n",
                             "parallel/c.cpp": "x" * 99 + "\n",
                             "src/base/d.cpp": "\n", "src/data/e.cpp": "\n", "collectives/analysis/cost.cpp": "\n",
                             "collectives/backends/shm.cpp": "\n",
                             "collectives/reduce/chain.cpp": "\n", "collectives/schedule/algorithms.cpp": "\n"})
        self.assertEqual(found, {"parallel/a.cpp": "parallel-1", "parallel/pipeline/b.cpp": "parallel-2",
                                 "parallel/c.cpp": "parallel-1",
                                 "src/base/d.cpp": "src_base-1", "src/data/e.cpp": "src_data-1",
                                 "collectives/analysis/cost.cpp": "collectives-1",
                                 "collectives/backends/shm.cpp": "collectives-1",
                                 "collectives/reduce/chain.cpp": "algorithms-1",
                                 "collectives/schedule/algorithms.cpp": "algorithms-1"})

    def test_the_parsers_of_json_and_toml_have_bundles_of_their_own(self):
        found = self.sorted({"src/base/a.cpp": "#include <nlohmann/json.hpp>\n",
                             "parallel/b.cpp": '#include "src/base/toml.hpp"\n',
                             "experiments/c.cpp": '#include "experiments/bench/results.hpp"\n',
                             "experiments/d.cpp": "#include <vector>\n"})
        self.assertEqual(list(found.values()),
                         ["library_parsers-1", "library_parsers-1", "experiments_parsers-1", "experiments-1"])

    def test_names_that_two_files_hide_stay_apart(self):
        hides = "namespace a {{\nnamespace {{\n\n{}\n\n}}  // namespace\n}}  // namespace a\n"
        for one, other, together in (("class Picture final : Drawing {\n};", "struct Picture {\n};", False),
                                     ("constexpr int most = 8;", "std::size_t most(std::span<int> x) {\n}", False),
                                     ("[[noreturn]] void refuse(int x) {\n}", "[[noreturn]] void refuse(float x) {\n}",
                                      False),
                                     ("const std::vector<double>& table() {\n}", "const char* const table[] = {};", False),
                                     ("namespace fs = std::filesystem;", "namespace fs = std::filesystem;", True),
                                     ("using Json = nlohmann::json;", "using Json = nlohmann::ordered_json;", False),
                                     ("int one() {\n  return two;\n}", "int two() {\n  return one;\n}", True)):
            found = self.sorted({"parallel/a.cpp": hides.format(one), "parallel/b.cpp": hides.format(other)})
            self.assertEqual(found["parallel/a.cpp"] == found["parallel/b.cpp"], together, (one, other))
        shown = self.sorted({"parallel/a.cpp": "namespace a {\nint one() {\n}\n}\n",
                             "parallel/b.cpp": "namespace b {\nint one() {\n}\n}\n"})
        self.assertEqual(set(shown.values()), {"parallel-1"})

    def test_what_opens_a_namespace_to_its_neighbors_is_left_out(self):
        self.assertEqual(self.sorted({"parallel/a.cpp": "namespace {\nusing namespace b;\n}\n", "parallel/b.cpp": "\n"}),
                         {"parallel/b.cpp": "parallel-1"})

    def test_tests_that_open_the_same_namespace_go_together(self):
        opens = "using namespace chorale;\n"
        more = opens + "using namespace chorale::b;\n"
        self.assertEqual(self.sorted({"tests/a_test.cpp": opens, "tests/b_test.cpp": more, "tests/c_test.cpp": "\n",
                                      "tests/d_test.cpp": more}),
                         {"tests/a_test.cpp": "tests-1", "tests/c_test.cpp": "tests-1",
                          "tests/b_test.cpp": "tests_b-1", "tests/d_test.cpp": "tests_b-1"})

    def test_a_test_stays_apart_from_headers_that_declare_a_name_of_its_own(self):
        hides, uses = "namespace {\nint places() {\n}\n}\n", '#include "parallel/outer.hpp"\n'
        headers = {"parallel/outer.hpp": '#include "parallel/inner.hpp"\n', "parallel/inner.hpp": "struct places {\n};\n"}
        for one, other, together in ((hides, uses, False), (uses, hides, False), (hides, "int x;\n", True),
                                     (uses + hides, uses, True)):
            found = self.sorted({"tests/a_test.cpp": one, "tests/b_test.cpp": other, **headers})
            self.assertEqual(found["tests/a_test.cpp"] == found["tests/b_test.cpp"], together, (one, other))


if __name__ == "__main__":
    unittest.main()
