"""Tests packaging/ and CITATION.cff. The version must be the same in all files, the Makefile must know all settings that
these files use, and all files and packages that they name must exist."""
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest

from programs import build, chorale, start


def text_of(file):
    with open(file, encoding="utf-8") as stream:
        return stream.read()


class Spec(dict):
    """Stands in for Spack's spec, which describes a configuration. Has dependencies and variants, and can be tested for
    "+ucx" or "~ucx"."""

    def __init__(self, **values):
        super().__init__({name: types.SimpleNamespace(prefix=f"/opt/{name}", mpicxx="/opt/mpi/bin/mpicxx")
                          for name in ("mpi", "cuda", "nccl")})
        self.variants = {name: types.SimpleNamespace(value=value) for name, value in values.items()}

    def __contains__(self, word):
        return self.variants[word[1:]].value == (word[0] == "+")


def spack_recipe():
    """Executes the Spack recipe with stand-ins for Spack's modules. Returns the recipe's class, and its declarations indexed
    by directive."""
    said = {}

    def directive(name):
        return lambda *words, **more: said.setdefault(name, []).append((words, more))

    made = {name: types.ModuleType(name) for name in ("spack", "spack.package", "spack_repo", "spack_repo.builtin",
                                                      "spack_repo.builtin.build_systems",
                                                      "spack_repo.builtin.build_systems.cuda",
                                                      "spack_repo.builtin.build_systems.makefile")}
    for name in ("license", "version", "variant", "conflicts", "depends_on", "make"):
        setattr(made["spack.package"], name, directive(name))
    made["spack_repo.builtin.build_systems.cuda"].CudaPackage = type("CudaPackage", (), {})
    made["spack_repo.builtin.build_systems.makefile"].MakefilePackage = type("MakefilePackage", (), {})
    names = {}
    try:
        sys.modules.update(made)
        exec(compile(text_of("packaging/spack/package.py"), "package.py", "exec"), names)
    finally:
        for name in made:
            del sys.modules[name]
    return names["Chorale"], said


class Packaging(unittest.TestCase):
    def test_one_version_is_everywhere(self):
        release = start([chorale, "--version"]).stdout.split()[1]
        self.assertRegex(release, r"^\d+\.\d+\.\d+$")
        minor = release.rpartition(".")[0]
        self.assertIn(f"\nVersion: {release}\n", text_of(f"{build}/chorale.pc"))
        self.assertIn(f"\nversion: {release}\n", text_of("CITATION.cff"))
        self.assertIn(((release,), {}), spack_recipe()[1]["version"])
        self.assertIn(f"spack dev-build chorale@{release} ", text_of("packaging/spack/package.py"))
        sections = re.findall(r"(?m)^## (.*)$", text_of("CHANGELOG.md"))
        self.assertEqual(sections[0], "Unreleased")
        self.assertRegex(sections[1], rf"^{re.escape(release)} \(\d{{4}}-\d\d\)$")
        self.assertIn(f"libchorale.so.{minor}`", text_of("docs/library.md"))

    def test_the_citation_has_what_its_format_requires(self):
        lines = text_of("CITATION.cff").splitlines()
        keys = {line.partition(":")[0] for line in lines if re.match(r"[a-z-]+:", line)}
        self.assertLessEqual({"cff-version", "message", "title", "authors"}, keys)
        self.assertEqual(lines[0], "cff-version: 1.2.0")
        self.assertIn("  - name: The Chorale developers", lines)

    def test_spack_sets_what_the_makefile_knows(self):
        known = set(re.findall(r"\b[A-Z_]+\b", "".join(re.findall(r"#: .*", text_of("Makefile")))))
        recipe, said = spack_recipe()
        self.assertEqual({words[0] for words, _ in said["variant"]}, {"cuda", "nccl", "ucx", "arch"})
        for cuda, nccl, ucx in ((False, False, True), (True, False, False), (True, True, True)):
            package = recipe()
            package.spec = Spec(cuda=cuda, nccl=nccl, ucx=ucx, arch="zen4", cuda_arch=("90",))
            package.build(package.spec, "/opt/chorale")
            package.install(package.spec, "/opt/chorale")
            targets = []
            for words, _ in said.pop("make"):
                targets.append(words[0])
                given = dict(word.split("=", 1) for word in words[1:])
                self.assertLessEqual(set(given), known)
                self.assertEqual([bool(given[name]) for name in ("CUDA", "NCCL")], [cuda, nccl])
                self.assertEqual("UCX" in given, not ucx)
                self.assertEqual(given.get("CUDA_ARCH"), "sm_90" if cuda else None)
                self.assertEqual(given.get("PREFIX"), "/opt/chorale" if words[0] == "install" else None)
            self.assertEqual(targets, ["all", "install"])

    def test_spack_has_every_library_of_the_build(self):
        named = {re.split(r"[@+ ]", words[0])[0] for words, _ in spack_recipe()[1]["depends_on"]}
        package_of = {"hdf5": "hdf5", "dnnl": "onednn", "uring": "liburing", "cli11": "cli11", "spdlog": "spdlog",
                      "fmt": "fmt", "tomlplusplus": "tomlplusplus", "nlohmann": "nlohmann-json", "ucx": "ucx"}
        debian = re.search(r"(?ms)^build=.*?^tests=", text_of("packaging/setup")).group()
        for part, package in package_of.items():
            self.assertIn(part, debian)
            self.assertIn(package, named)

    def test_setup_installs_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, does in (("id", "echo 0"), ("apt-get", 'echo "apt-get $*"'), ("sudo", "exit 1"),
                               ("dpkg-query", "printf 'ii %s ' ${@:3} | sed 's/ii mpich //g; s/ii catch2 //g'")):
                with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/bash\n{does}\n")
                os.chmod(f"{folder}/{name}", 0o755)
            for words, missing in ((["mpicxx", "file", "program"], ""), (["mpicxx", "file", "lint", "test"], " catch2"),
                                   (["mpicxx", "file", "check"], " catch2"),
                                   (["mpicxx.mpich", "environment", "all", "tests"], " mpich catch2")):
                said = start(["packaging/setup", *words], PATH=f"{folder}:{os.environ['PATH']}")
                self.assertEqual((said.returncode, said.stderr), (0, ""))
                if missing:
                    self.assertIn(f"installing{missing}\napt-get update -q\napt-get install -y", said.stdout)
                    self.assertIn(f"--no-upgrade{missing} -q", said.stdout)
                else:
                    self.assertEqual(said.stdout, "")

    def test_the_container_copies_what_is_there_and_checks_with_commands_that_are_there(self):
        lines = text_of("packaging/Containerfile").replace("\\\n", " ").splitlines()
        copied = [line.split()[1:] for line in lines if line.startswith("COPY ") and "--from" not in line]
        self.assertTrue(all(os.path.exists(place) for words in copied for place in words[:-1]), copied)
        self.assertEqual([line.split()[1] for line in lines if line.startswith("FROM ")], ["debian:12"] * 2)
        built = ["Makefile", "include", "src", "collectives", "layers", "parallel", "experiments"]
        needed = subprocess.run(["git", "ls-files", *built],
                                capture_output=True, text=True)
        self.assertLessEqual({file.split("/")[0] for file in needed.stdout.split()}, {words[0] for words in copied})
        checks = next(line for line in lines if line.startswith("RUN ") and "chorale info" in line)
        commands = re.findall(r"chorale (\w+)", checks)
        self.assertEqual(commands, ["info", "verify", "compare"])
        overview = start([chorale, "--help"]).stdout
        self.assertTrue(all(f"\n  {command} " in overview for command in commands))


if __name__ == "__main__":
    unittest.main()
