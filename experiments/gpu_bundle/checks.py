"""Parts that compare the device with the host, by tests, by losses, and bit by bit."""
import hashlib
import os
import re
import shutil

from machine import Failure, gpu

presets = ("tiny", "tiny-llama")
few = ["--train-iters", "5", "--eval-samples", "1", "--threads", "1"]
# Tests without matrix products, because memcheck takes minutes to instrument cuBLASLt.
single_kernels = ("activation", "attention", "cross_entropy", "dropout", "embedding", "norm")
layouts = ((1, "dp1"), (2, "dp2.z2"), (2, "tp2.sp"), (2, "pp2"), (4, "dp2.tp2"))


def model(session, preset):
    """Returns the preset to train. The emulated device is a thousand times slower, so it trains a smaller model."""
    if not session.options.emulated:
        return ["--preset", preset]
    family = "llama" if "llama" in preset else "gpt2"
    return ["--family", family, "--num-layers", "2", "--hidden-size", "32", "--num-attention-heads", "4",
            "--seq-length", "16", "--vocab-size", "64", "--global-batch-size", "4"]


def held(good, figure):
    return ("held" if good else "missed"), figure


def environment(session):
    torch = session.torch_version or "none that sees a GPU"
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    session.run([session.path("build/chorale"), "info"])  # for the log
    figure = f"{gpu('name,driver_version,memory.total') or 'no GPU'}; glibc {glibc}; PyTorch {torch}"
    return ("FAILED", session.no_gpu) if session.no_gpu else ("held", figure)


def counted(text):
    """Reads the numbers of passed and failed tests from the last line of the tests' output."""
    found = re.search(r"^(\d+) passed, (\d+) failed(?:, \d+ skipped)?$", text, re.MULTILINE)
    if not found:
        raise Failure("the tests did not end")
    return int(found[1]), int(found[2])


def tests(filters, ranks=0):
    def body(session):
        command = [session.path("build/tests_run"), filters]
        text = session.mpirun(ranks, command, check=False) if ranks else session.run(command, check=False)
        passed, failed = counted(text)
        return held(passed and not failed, f"{passed} passed, {failed} failed")
    return body


def losses(session):
    """Compares the device's f32 losses under each kind of layout with the host's losses on one rank."""
    worst = 0.0
    for preset in presets:
        words = [*model(session, preset), *few, "--no-save"]
        host = session.column(session.train("cpu", words), "loss")
        for ranks, layout in layouts:
            seen = session.column(session.train("cuda", [*words, "--layout", layout], ranks), "loss")
            if len(seen) != len(host):
                raise Failure(f"{preset} {layout}: {len(seen)} losses, {len(host)} on the host")
            worst = max([worst, *(abs(a - b) / abs(b) for a, b in zip(seen, host))])
    return held(worst <= 1e-5, f"{worst:.1e} at most, {2 * len(layouts)} runs")


def weights(folder):
    with open(os.path.join(folder, "checkpoints", "latest", "rank-0.safetensors"), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def exact(session):
    """On one rank the device must be bit-identical to the host, and every layout must be bit-identical to one rank."""
    hashes = []
    for preset in presets:
        words = [*model(session, preset), *few, "--numerics", "exact"]
        host, device = (weights(session.train(where, words)) for where in ("cpu", "cuda"))
        if host != device:
            raise Failure(f"{preset}: weights of the host hash to {host}, of the device to {device}")
        hashes.append(host)
    proved = "dp2.z3,tp2.sp,pp2,dp2.tp2" if session.options.emulated else "all"
    # Uses shared memory, because ranks that share a GPU would use NCCL over sockets, which takes several times as long.
    command = [session.path("build/chorale"), "prove", *model(session, "tiny"), "--device", "cuda", "--backend", "shm",
               "--steps", "2"]
    text = session.mpirun(4, [*command, "--layouts", proved, "--run-dir", session.path("runs")], check=False)
    found = re.search(r"(\d+) of (\d+) equal to one rank", text)
    if not found:
        raise Failure("chorale prove did not end")
    return held(found[1] == found[2], f"{found[1]} of {found[2]} layouts; host = device: {' and '.join(hashes)}")


def sanitizer(session):
    places = [shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"]
    tool = next((path for path in places if path and os.path.exists(path)), None)
    if not tool:
        return "cannot run", "no compute-sanitizer on this machine"
    text = session.run([tool, "--tool", "memcheck", session.path("build/tests_run"), "-#",
                        ",".join(f"[gpu][#{kernels}_test]" for kernels in single_kernels)], check=False)
    found = re.search(r"ERROR SUMMARY: (\d+) error", text)
    if not found:
        raise Failure("compute-sanitizer gave no summary")
    passed, failed = counted(text)
    return held(found[1] == "0" and passed and not failed, f"{found[1]} errors in {passed} tests")
