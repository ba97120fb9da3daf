"""Tests the user program in docs/library.md, which is also a file in examples/. The commands of docs/library.md must build
the program, both from the build folder and against an installed library. The program finds the installed library with
pkg-config and with CMake. The built program must run on every backend. A second program, in tests/client/, makes random
calls, and is built and run in the same ways. An installed `chorale` must find its suites and machine files."""
import glob
import os
import re
import shutil
import tempfile
import unittest

from programs import backends, build, chorale, launch, ranks, sample, start

mpicxx = os.path.basename(launch[0]).replace("mpirun", "mpicxx")


def page():
    with open("docs/library.md", encoding="utf-8") as file:
        return file.read()


class Client(unittest.TestCase):
    def built(self, command, **environment):
        result = start(["bash", "-c", command], limit_seconds=300, **environment)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}")
        self.assertEqual(result.stderr, "", command)

    def sums(self, program, backend):
        result = ranks(2, program, backend, "100000")
        self.assertEqual(result.returncode, 0, result.stderr)
        name = re.escape(backend)
        self.assertRegex(result.stdout, rf"^{name}, 2 ranks: every x\[i\] is 3; [0-9.]+ us, [0-9.]+ GB/s on the bus\n$")


class OwnProgram(Client):
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


class Installed(Client):
    """Tests one installation in a temporary folder. The path of this folder is not compiled into the library."""

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder, cls.home = holder.name, f"{holder.name}/opt/chorale"
        made = start(["make", "-s", "SETUP=", "install", f"DESTDIR={cls.folder}", "PREFIX=/opt/chorale"], limit_seconds=300)
        assert made.returncode == 0, made.stdout + made.stderr
        shutil.copy("examples/1_all_reduce.cpp", f"{cls.folder}/my.cpp")

    def test_everything_is_where_users_look(self):
        self.assertEqual(sorted(os.listdir(self.home)), ["bin", "include", "lib", "share"])
        self.assertEqual(start([f"{self.home}/bin/chorale", "info"]).returncode, 0)
        for file in ("share/man/man1/chorale.1", "share/bash-completion/completions/chorale"):
            self.assertGreater(os.path.getsize(f"{self.home}/{file}"), 1000)

    def test_the_library_has_the_names_that_linker_and_loader_look_for(self):
        release = start([chorale, "--version"]).stdout.split()[1]
        minor = release.rpartition(".")[0]
        for folder in (build, f"{self.home}/lib"):
            self.assertEqual(os.readlink(f"{folder}/libchorale.so"), f"libchorale.so.{minor}")
            self.assertEqual(os.readlink(f"{folder}/libchorale.so.{minor}"), f"libchorale.so.{release}")
        names = start(["objdump", "-p", f"{self.home}/lib/libchorale.so.{release}"]).stdout
        self.assertRegex(names, rf"SONAME +libchorale\.so\.{re.escape(minor)}\n")

    def test_suites_and_machines_are_found_from_anywhere(self):
        program = os.path.abspath(f"{self.home}/bin/chorale")
        compared = start([*launch, "-n", "2", program, "compare", "small", "--repetitions", "1"], folder=self.folder)
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertIn("Which of three layouts trains tiny fastest on two ranks?", compared.stdout)
        refused = start([program, "compare", "smal"], folder=self.folder)
        self.assertEqual(refused.returncode, 2)
        suites = sorted(os.path.splitext(os.path.basename(file))[0] for file in glob.glob("experiments/suites/*.toml"))
        self.assertEqual(refused.stderr.splitlines(), ["error: there is no such suite",
                                                       f"  suite smal; known: {', '.join(suites)}",
                                                       '  did you mean "small"?'])
        planned = start([program, "plan", "--preset", "nano", "--layout", "dp2", "--dtype", "bf16", "--machine",
                         "selene"], folder=self.folder)
        self.assertEqual(planned.returncode, 0, planned.stderr)

    def test_pkg_config_finds_it_wherever_it_lies(self):
        command = re.search(r"^mpicxx .*my.cpp.*$", page(), re.MULTILINE).group().replace("mpicxx", mpicxx)
        self.built(f"cd {self.folder} && {command}", PKG_CONFIG_PATH=f"{self.home}/lib/pkgconfig")
        self.sums(f"{self.folder}/my", "shm")
        self.loads_the_installed_library(f"{self.folder}/my")
        self.only_chorale_is_on_the_path(f"{self.home}/lib/pkgconfig/chorale.pc")
        self.only_chorale_is_on_the_path(f"{build}/chorale.pc")
        self.random_calls_come_right(self.folder, command, self.home)
        self.the_plugin_is_found_beside_the_library(self.folder, command, self.home)

    def test_cmake_finds_it_wherever_it_lies(self):
        if not shutil.which("cmake"):
            self.skipTest("no cmake here")
        listing = re.search(r"```cmake\n(.*?)```", page(), re.DOTALL).group(1)
        project = f"{self.folder}/project"
        os.mkdir(project)
        shutil.copy("examples/1_all_reduce.cpp", f"{project}/my.cpp")
        configure = f"cmake -S {project} -B {project}/build -DCMAKE_PREFIX_PATH={self.home}"
        release = start([chorale, "--version"]).stdout.split()[1]
        major, minor, patch = map(int, release.split("."))
        for wanted, found in sample(((f"{major}.{minor}", True), (f"{release} EXACT", True),
                                     (f"{major}.{minor - 1}...{release}", True), (f"{major}.{minor}.{patch + 1}", False),
                                     (f"{major}.{minor - 1}", False), (f"{major}.{minor - 1}...<{release}", False)), 3):
            with open(f"{project}/CMakeLists.txt", "w") as file:
                file.write(listing.replace("find_package(Chorale ", f"find_package(Chorale {wanted} "))
            result = start(["bash", "-c", configure], limit_seconds=300)
            self.assertEqual(result.returncode == 0, found, f"{wanted}: {result.stdout}{result.stderr}")
            if not found:
                self.assertIn(f"version: {release}", result.stderr, wanted)
        with open(f"{project}/CMakeLists.txt", "w") as file:
            file.write(listing)
        # Without MAKEFLAGS, because cmake's make would otherwise look for the jobserver of the make that runs these tests,
        # and warn.
        self.built(f"{configure} && env -u MAKEFLAGS cmake --build {project}/build")
        self.sums(f"{project}/build/my", "shm")
        self.loads_the_installed_library(f"{project}/build/my")

    def test_each_public_header_compiles_alone(self):
        """Compiles each public header in a folder outside the source tree, without the include paths of any other
        library."""
        headers = sorted(glob.glob("include/chorale/*.hpp"))
        self.assertTrue(headers)
        for header in [f"chorale/{os.path.basename(header)}" for header in headers]:
            with self.subTest(header=header):
                with open(f"{self.folder}/alone.cpp", "w", encoding="utf-8") as file:
                    file.write(f"#include <{header}>\n#include <{header}>\n")
                self.built(f"cd {self.folder} && g++ -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Werror "
                           f"-I{self.home}/include -fsyntax-only -MD -MF alone.d alone.cpp")
                with open(f"{self.folder}/alone.d", encoding="utf-8") as file:
                    reached = {os.path.basename(os.path.dirname(path)) + "/" + os.path.basename(path)
                               for path in file.read().split() if path.startswith(self.home)}
                self.assertLessEqual(reached, {f"chorale/{os.path.basename(public)}" for public in headers})

    def loads_the_installed_library(self, program):
        loaded = re.search(r"libchorale\.so\.\S+ => (\S+)", start(["ldd", program]).stdout).group(1)
        self.assertEqual(os.path.realpath(loaded), os.path.realpath(f"{self.home}/lib/libchorale.so"))

    def only_chorale_is_on_the_path(self, package):
        """The include path must expose only the folder chorale, because a user's program can have folders called src and
        collectives."""
        flags = start(["pkg-config", "--cflags-only-I", package]).stdout.split()
        ours = [flag[2:] for flag in flags if "chorale" in os.listdir(flag[2:])]
        self.assertEqual(len(ours), 1, flags)
        self.assertEqual(os.listdir(ours[0]), ["chorale"])
        self.assertNotIn("src", os.listdir(f"{ours[0]}/chorale"))

    def random_calls_come_right(self, folder, command, home):
        shutil.copytree("tests/client", f"{folder}/tests/client")
        strict = "-Wall -Wextra -Wpedantic -Wshadow -Werror -iquote ."
        command = command.replace("my.cpp", f"{strict} tests/client/random_calls.cpp")
        command = command.replace("-o my", "-lfmt -o random_calls")
        self.built(f"cd {folder} && {command}",
                   PKG_CONFIG_PATH=f"{home}/lib/pkgconfig")
        for backend, count in sample([(backend, count) for backend in backends() for count in (2, 3)], 3):
            with self.subTest(backend=backend, ranks=count):
                result = ranks(count, f"{folder}/random_calls", backend, str(count), "5", "200000")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, rf"^{re.escape(backend)}, {count} ranks, seed {count}: "
                                                r"[0-9]+ calls of rank 0, all right\n$")

    def the_plugin_is_found_beside_the_library(self, folder, command, home):
        """The emulated CUDA plugin is in the folder into which an installation copies the real plugin. The program is in a
        different folder."""
        with open(f"{folder}/plugin.cpp", "w") as program:
            program.write("#include <chorale/chorale.hpp>\n#include <cstdio>\nint main() try { chorale::cuda_memory(0); } "
                          "catch (const chorale::Error& why_not) { std::puts(why_not.what()); }\n")
        self.built(f"cd {folder} && {command.replace('my.cpp', 'plugin.cpp').replace('-o my', '-o plugin')}",
                   PKG_CONFIG_PATH=f"{home}/lib/pkgconfig")
        os.makedirs(f"{home}/lib/chorale", exist_ok=True)
        shutil.copy(f"{build}/emulated/chorale_cuda.so", f"{home}/lib/chorale/chorale_cuda.so")
        why_not = start([f"{folder}/plugin"]).stdout
        if not re.search("built where|switched off", why_not):  # a build without CUDA looks for no plugin
            self.assertEqual(why_not, "")


if __name__ == "__main__":
    unittest.main()
