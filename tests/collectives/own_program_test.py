"""The program in docs/library.md equals the file in examples/. It builds with the commands of that page, from the build
folder and against an installed library, and runs on every backend. The program in tests/client/, which makes random calls,
is built and run in the same ways."""
import os
import re
import shutil
import tempfile
import unittest

from programs import backends, build, launch, ranks, start

mpicxx = os.path.basename(launch[0]).replace("mpirun", "mpicxx")


def page():
    with open("docs/library.md", encoding="utf-8") as file:
        return file.read()


class OwnProgram(unittest.TestCase):
    def built(self, command, **environment):
        result = start(["bash", "-c", command], limit_seconds=300, **environment)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}")
        self.assertEqual(result.stderr, "", command)

    def sums(self, program, backend):
        result = ranks(2, program, backend, "100000")
        self.assertEqual(result.returncode, 0, result.stderr)
        name = re.escape(backend)
        self.assertRegex(result.stdout, rf"^{name}, 2 ranks: every x\[i\] is 3; [0-9.]+ us, [0-9.]+ GB/s on the bus\n$")

    def test_the_program_on_the_page_is_the_example(self):
        programs = re.findall(r"```cpp\n(.*?)```", page(), re.DOTALL)
        with open("examples/1_all_reduce.cpp", encoding="utf-8") as file:
            self.assertIn(file.read(), programs)

    def test_it_builds_as_the_page_says_and_runs_on_every_backend(self):
        command = re.search(r"^mpicxx .*examples/1_all_reduce.cpp.*$", page(), re.MULTILINE).group()
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/all_reduce"
            self.built(command.replace("mpicxx", mpicxx).replace("build/", f"{build}/").replace("-o all_reduce",
                                                                                                f"-o {program}"))
            for backend in backends():
                with self.subTest(backend=backend):
                    self.sums(program, backend)
            wrong = ranks(2, program, "sm")
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            self.assertIn('did you mean "shm"?', wrong.stderr)

    def test_it_builds_against_what_was_installed_wherever_that_lies(self):
        command = re.search(r"^mpicxx .*my.cpp.*$", page(), re.MULTILINE).group().replace("mpicxx", mpicxx)
        with tempfile.TemporaryDirectory() as folder:
            self.built(f"make -s SETUP= install DESTDIR={folder} PREFIX=/opt/chorale > {folder}/log 2>&1 || {{ cat "
                       f"{folder}/log; exit 1; }}")
            home = f"{folder}/opt/chorale"
            self.assertEqual(sorted(os.listdir(home)), ["bin", "include", "lib", "share"])
            shutil.copy("examples/1_all_reduce.cpp", f"{folder}/my.cpp")
            self.built(f"cd {folder} && {command}", PKG_CONFIG_PATH=f"{home}/lib/pkgconfig")
            self.sums(f"{folder}/my", "shm")
            uses = start(["ldd", f"{folder}/my"]).stdout
            self.assertIn(f"{os.path.realpath(home)}/lib/pkgconfig/../libchorale.so", uses)
            self.assertNotIn(os.path.abspath(build) + "/", uses)
            self.assertEqual(start([f"{home}/bin/chorale", "info"]).returncode, 0)
            for file in ("share/man/man1/chorale.1", "share/bash-completion/completions/chorale"):
                self.assertGreater(os.path.getsize(f"{home}/{file}"), 1000)
            self.only_chorale_is_on_the_path(f"{home}/lib/pkgconfig/chorale.pc")
            self.only_chorale_is_on_the_path(f"{build}/chorale.pc")
            self.random_calls_come_right(folder, command, home)
            self.the_plugin_is_found_beside_the_library(folder, command, home)

    def only_chorale_is_on_the_path(self, package):
        """The include path must expose only chorale/: a user's program may have folders called src and collectives."""
        flags = start(["pkg-config", "--cflags-only-I", package]).stdout.split()
        ours = [flag[2:] for flag in flags if "chorale" in os.listdir(flag[2:])]
        self.assertEqual(len(ours), 1, flags)
        self.assertEqual(os.listdir(ours[0]), ["chorale"])
        self.assertNotIn("src", os.listdir(f"{ours[0]}/chorale"))

    def random_calls_come_right(self, folder, command, home):
        shutil.copytree("tests/client", f"{folder}/tests/client")
        strict = "-Wall -Wextra -Wpedantic -Wshadow -Werror -iquote ."
        command = command.replace("my.cpp", f"{strict} tests/client/random_calls.cpp").replace("-o my", "-o random_calls")
        self.built(f"cd {folder} && {command}",
                   PKG_CONFIG_PATH=f"{home}/lib/pkgconfig")
        for backend in backends():
            for count in (2, 3):
                with self.subTest(backend=backend, ranks=count):
                    result = ranks(count, f"{folder}/random_calls", backend, str(count), "5", "200000")
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertRegex(result.stdout, rf"^{re.escape(backend)}, {count} ranks, seed {count}: "
                                                    r"[0-9]+ calls of rank 0, all right\n$")

    def the_plugin_is_found_beside_the_library(self, folder, command, home):
        """The emulated plugin lies where an install puts the real one, and the program lies in another folder."""
        with open(f"{folder}/plugin.cpp", "w") as program:
            program.write("#include <chorale/chorale.hpp>\nint main() { fmt::print(\"{}\", "
                          "chorale::DevicePlugin().why_not()); }\n")
        self.built(f"cd {folder} && {command.replace('my.cpp', 'plugin.cpp').replace('-o my', '-o plugin')}",
                   PKG_CONFIG_PATH=f"{home}/lib/pkgconfig")
        os.makedirs(f"{home}/lib/chorale", exist_ok=True)
        shutil.copy(f"{build}/emulated/chorale_cuda.so", f"{home}/lib/chorale/chorale_cuda.so")
        why_not = start([f"{folder}/plugin"]).stdout
        if not re.search("built where|switched off", why_not):  # a build without CUDA looks for no plugin
            self.assertEqual(why_not, "")


if __name__ == "__main__":
    unittest.main()
