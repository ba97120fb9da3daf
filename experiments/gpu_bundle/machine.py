"""The machine that runs the bundle: environment variables for the bundle's programs, the GPU, and PyTorch."""
import glob
import os
import re
import signal
import subprocess
import sys

oldest_driver = 580  # CUDA 13 needs this driver or a newer one
facts = "clocks.sm,clocks.mem,power.draw,temperature.gpu"


class Failure(Exception):
    """A part of the bundle failed; the message is printed in the table."""


def end_group(process):
    """Ends a command and every process that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def said(command, environment=None, seconds=60):
    """Returns the output of a command, or "" if the command is missing or fails."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=seconds,
                              check=True, env=environment).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def places(root):
    """Returns the paths of Open MPI's plugins, prefix, help texts, settings and launcher, as pack.py recorded them."""
    with open(os.path.join(root, "openmpi")) as file:
        return [root + path for path in file.read().split("\n")]


def mpirun(root):
    return [places(root)[4], "--allow-run-as-root", "--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE"]


def cuda_folders():
    """Finds the folders with cuBLASLt or NCCL, in the CUDA Toolkit or in PyTorch's installation."""
    folders = glob.glob("/usr/local/cuda*/lib64") + glob.glob("/usr/local/cuda*/targets/*/lib")
    for python in pythons():
        for package in said([python, "-c", "import nvidia; print(*nvidia.__path__, sep='\\n')"]).split():
            folders += glob.glob(f"{package}/*/lib")
    return [folder for folder in folders if glob.glob(f"{folder}/libcublasLt.so.1[3-9]")
            or glob.glob(f"{folder}/libnccl.so.2")]


def pythons():
    return list(dict.fromkeys([sys.executable, "python3", *glob.glob("/opt/*/bin/python3"),
                               *glob.glob("/opt/*/.venv/bin/python3")]))


def environment_for(root):
    plugins, prefix, texts, settings, _ = places(root)
    pmix = f"{root}/usr/lib/x86_64-linux-gnu/pmix2"
    own = {os.path.dirname(path) for path in glob.glob(f"{root}/**/*.so*", recursive=True)} - {plugins}
    there = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    return {**os.environ,
            "PATH": f"{root}/usr/bin:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "LD_LIBRARY_PATH": ":".join([*sorted(own), *there, *cuda_folders()]),
            "OPAL_PREFIX": prefix, "PMIX_INSTALL_PREFIX": prefix, "OPAL_PKGDATADIR": texts, "OPAL_SYSCONFDIR": settings,
            "OMPI_MCA_mca_base_component_path": plugins, "PMIX_MCA_mca_base_component_path": f"{pmix}/lib/pmix",
            "PMIX_PKGDATADIR": f"{pmix}/share/pmix",
            "PMIX_MCA_pcompress_base_silence_warning": "1", "UCX_MODULE_DIR": f"{root}/usr/lib/x86_64-linux-gnu/ucx",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": "true"}


def python_with_cuda():
    """Finds a Python interpreter whose PyTorch sees a GPU. Returns its path and PyTorch's version, or (None, None)."""
    for python in pythons():
        version, _, sees = said([python, "-c",
                                 "import torch; print(torch.__version__, torch.cuda.is_available())"]).strip().partition(" ")
        if sees == "True":
            return python, version
    return None, None


def gpu(query):
    return said(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]).strip().split("\n")[0]


def why_no_gpu(session):
    """Returns the reason why nothing can run on a GPU here, or "" if a GPU works or is emulated."""
    if not session.options.emulated:
        driver = gpu("driver_version")
        if not driver:
            return "no NVIDIA driver: nvidia-smi finds none"
        if int(driver.split(".")[0]) < oldest_driver:
            return f"driver {driver} is too old for CUDA 13: {oldest_driver} or newer"
    told = said([session.path("build/chorale"), "info"], session.environment)
    lack = re.search(r"^devices\n +none: (.*)$", told, re.MULTILINE)
    return lack[1] if lack else "" if told else "the program does not start here (log.txt says why)"


class Watch:
    """Samples clocks, power and temperature of the GPU while a part runs."""

    def __init__(self, environment):
        self.environment, self.process, self.rows = environment, None, []

    def __enter__(self):
        try:
            self.process = subprocess.Popen(["nvidia-smi", f"--query-gpu={facts}", "--format=csv,noheader,nounits", "-lms",
                                             "500"],
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                            start_new_session=True)
        except OSError:
            pass
        return self

    def __exit__(self, *_):
        if not self.process:
            return
        self.process.terminate()
        for line in self.process.communicate()[0].splitlines():
            try:
                self.rows.append([float(value) for value in line.split(",")])
            except ValueError:
                pass  # "[N/A]", or a truncated last line

    def summary(self):
        if not self.rows:
            return ""
        clock, memory, power, heat = ([row[c] for row in self.rows] for c in range(4))
        return (f"SM {min(clock):.0f} to {max(clock):.0f} MHz, memory {max(memory):.0f} MHz, "
                f"{max(power):.0f} W, {max(heat):.0f} °C")
