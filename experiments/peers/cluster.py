#!/usr/bin/python3
"""Times data-parallel training of the preset nano on emulated hosts (experiments/tools/hosts), with one rank per host, and
PyTorch's DistributedDataParallel over gloo (torch_gpt.py). At each link rate the programs take turns, so that other load on
the machine affects all of them.

  experiments/peers/cluster.py [--hosts 4] [--rates 100mbit,1gbit,10gbit,none] [--turns 3] [--steps 6] [--layouts z0,z1,z3]

Prints a table for experiments/findings/cluster.md: medians of tokens/s over all turns, and the bytes that each host sent per
step, as counted by its network interface. The bytes include the start of the program and the protocol headers.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys

import runs

sequences = 2  # per rank and step


def sent():
    """Returns the bytes that the hosts have sent to the switch so far."""
    with open("/proc/net/dev") as counters:
        return sum(int(line.split(":")[1].split()[0]) for line in counters if line.strip().startswith("to-n"))


def on_hosts(options, *command):
    names = ",".join(f"n{host}" for host in range(options.hosts))
    before = sent()
    done = subprocess.run(["mpirun", "--bind-to", "none", "-np", str(options.hosts), "--host", names, *command],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout + done.stderr, (sent() - before) / options.hosts / options.steps


def ours(options, layout):
    (_, moved), rows = runs.train(lambda *words: on_hosts(options, *words), f"dp{options.hosts}.{layout}", "bf16",
                                  sequences * options.hosts, options.steps)
    return [row["tokens_per_s"] for row in rows], moved


def torch(options):
    said, moved = on_hosts(options, "bash", "-c", f"RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE={options.hosts} MASTER_ADDR=n0 "
                           f"GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 B={sequences} STEPS={options.steps} "
                           f"{runs.here}/torch_gpt.py")
    return [float(re.search(r"tokens/s=(\d+)", said).group(1))], moved


def inside(options):
    """Runs the programs in turns on hosts that are up. Prints the tokens/s and the bytes of each program."""
    seen = {}
    for _ in range(options.turns):
        for name in [*options.layouts.split(","), "PyTorch"]:
            speeds, moved = torch(options) if name == "PyTorch" else ours(options, name)
            seen.setdefault(name, ([], []))
            seen[name][0].extend(speeds)
            seen[name][1].append(moved)
    print(json.dumps({name: [statistics.median(values) for values in both] for name, both in seen.items()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rates", default="100mbit,1gbit,10gbit,none")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--layouts", default="z0,z1,z3", help="ZeRO stages of dpN")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    print("| links | program | tokens/s | relative to PyTorch | sent per host and step |\n|---|---|---|---|---|")
    for rate in options.rates.split(","):
        turns = [f"{runs.root}/experiments/tools/hosts", "with", str(options.hosts), rate, __file__, "--inside",
                 *sys.argv[1:]]
        done = subprocess.run(turns, check=True, stdout=subprocess.PIPE, text=True)
        seen = json.loads(done.stdout.splitlines()[-1])
        for name, (speed, moved) in seen.items():
            program = name if name == "PyTorch" else f"dp{options.hosts}.{name}"
            ratio = speed / seen["PyTorch"][0]
            print(f"| {rate} | {program} | {speed:.0f} | {ratio:.2f} | {moved / 2**20:.1f} MiB |", flush=True)


if __name__ == "__main__":
    main()
