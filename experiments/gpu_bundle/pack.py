#!/usr/bin/python3
"""Packs all files that are needed to test and time this build on a machine with a GPU and little else (`make gpu-bundle`).

   pack.py BUILD FOLDER      BUILD has chorale, tests_run, chorale_cuda.so and emulated/chorale_cuda.so (the plugin
                             that emulates a GPU on the host)

   FOLDER/run          the script to start on that machine, and the modules that it imports
   FOLDER/root.tar.gz  the stripped programs, the peers in Python, and the shared libraries under their paths on this machine

The bundle leaves out the C library and the driver's libraries, because each machine has its own. It also leaves out cuBLASLt
and NCCL, because they are too large. `run` finds them in the machine's CUDA Toolkit or where its PyTorch is installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
most_mib = 60
programs = ("chorale", "tests_run", "chorale_cuda.so", "emulated/chorale_cuda.so")
scripts = ("run.py", "parts.py", "checks.py", "speeds.py", "machine.py")
peers = ("torch_gpt.py", "torch_llama.py", "torch_kernels.py")
# Libraries that the target machine provides.
theirs = re.compile(r"^(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libutil"
                    r"|libcuda|libcublas|libcublasLt|libnccl|libnvrtc)[-.]")
# Open MPI and PMIx load their plugins by name. These plugins are for networks and schedulers that a single machine does not
# have. The last plugin compresses messages, and finds its symbols only if PMIx is installed.
networks = re.compile(r"_(ofi|psm2?|openib|usnic|ucx|portals4|cm|yalla"
                      r"|slurm|tm|gridengine|loadleveler|alps|lsf|cuda|monitoring|pcompress_zlib)\.so$")


def said(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def needed(file):
    """Returns all shared libraries that a file needs, directly or indirectly."""
    found = re.findall(r"^\s+(\S+) => (/\S+)", said("ldd", file), re.MULTILINE)
    return {path for name, path in found if not theirs.match(name)}


def folders_of_openmpi():
    """Returns Open MPI's folders: plugins, prefix, help texts, settings."""
    lines = dict(line.split(":", 2)[1:] for line in said("ompi_info", "--parsable", "--path", "all").splitlines()
                 if line.startswith("path:"))
    return lines["pkglibdir"], lines["prefix"], lines["pkgdatadir"], lines["sysconfdir"]


def there(build):
    """Returns the programs of a build. Without the CUDA Toolkit, only the emulated GPU works: chorale_cuda.so is missing."""
    return [name for name in programs if name != "chorale_cuda.so" or os.path.exists(os.path.join(build, name))]


def gather(build, root):
    """Copies each library to its own path below `root`, and the programs to root/build, as in a checkout."""
    libraries = set()

    def program(source, target):
        target = os.path.join(root, target)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        subprocess.run(["strip", "-o", target, source], check=True)
        libraries.update(needed(source))

    def keep(path):
        target = root + path
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.realpath(path), target)
        shutil.copymode(os.path.realpath(path), target)

    for name in there(build):
        program(os.path.join(build, name), f"build/{name}")
    for name in peers:
        os.makedirs(f"{root}/experiments/peers", exist_ok=True)
        shutil.copy(os.path.join(here, "../peers", name), f"{root}/experiments/peers")
    plugins, prefix, texts, settings = folders_of_openmpi()
    loaded = [os.path.join(plugins, name) for name in os.listdir(plugins) if name.endswith(".so")
              and not networks.search(name)]
    for folder in filter(os.path.isdir, ("/usr/lib/x86_64-linux-gnu/ucx", "/usr/lib/x86_64-linux-gnu/pmix2/lib/pmix")):
        loaded += [os.path.join(folder, name) for name in os.listdir(folder) if re.search(r"\.so(\.\d+)?$", name)
                   and "cuda" not in name]
    for tool in ("orterun", "orted"):
        loaded.append(os.path.realpath(shutil.which(tool)))
    for path in loaded:
        libraries.update(needed(path))
        keep(path)
    for path in libraries:
        keep(path)
    for folder in (texts, settings, "/usr/lib/x86_64-linux-gnu/pmix2/share/pmix"):
        shutil.copytree(folder, root + folder, dirs_exist_ok=True)
    with open(os.path.join(root, "openmpi"), "w") as file:
        file.write("\n".join((plugins, prefix, texts, settings, os.path.realpath(shutil.which("orterun")))))


def main():
    build, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tempfile.TemporaryDirectory() as root:
        gather(build, root)
        with tarfile.open(os.path.join(folder, "root.tar.gz"), "w:gz", compresslevel=6) as archive:
            archive.add(root, arcname=".")
    for name in scripts:
        shutil.copy(os.path.join(here, name), os.path.join(folder, "run" if name == "run.py" else name))
    size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)) / (1 << 20)
    name = os.path.basename(folder)
    if "chorale_cuda.so" in there(build):
        print(f"{folder}: {size:.1f} MiB; copy it to the machine with the GPU and start {name}/run there")
    else:
        print(f"{folder}: {size:.1f} MiB without a CUDA plugin: it runs only with {name}/run --emulated")
    if size > most_mib:
        sys.exit(f"error: the bundle is too large\n  {size:.1f} MiB, at most {most_mib} are allowed\n"
                 "  leave a library out in pack.py")


if __name__ == "__main__":
    main()
