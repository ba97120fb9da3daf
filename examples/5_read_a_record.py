"""5. Reads the record of a run with h5py, without Chorale. Prints the command, the losses, and the time of each phase.

   mpirun -np 2 build/chorale train --preset tiny --train-iters 40
   python3 examples/5_read_a_record.py [RECORD [RUN]]      RECORD: default the newest; RUN: a run in the record of a suite

The program needs Python's h5py: apt install python3-h5py, or pip install h5py.
"""
import sys

try:
    import h5py
except ImportError as error:
    sys.exit(f"error: h5py is missing\n  {error}\n  apt install python3-h5py, or pip install h5py")

run = h5py.File(sys.argv[1] if len(sys.argv) > 1 else "runs/latest/run.h5")

# The record of a suite, which `make run` writes, has one group per run. The record of a single run stores its data in the
# root group.
if "runs" in run:
    names = list(run["runs"])
    name = sys.argv[2] if len(sys.argv) > 2 else names[0]
    if name not in names:
        sys.exit(f"no run is called {name}: name one of {', '.join(names)}")
    print(f"a suite of {len(names)} runs; this is {name}")
    run = run["runs"][name]

# Step 1: print the command, the machine and the status, which are attributes of the run. h5py reads strings as bytes.
command, machine, status = (run.attrs[name].decode() for name in ("cmdline", "machine", "status"))
print(f"{command}\n{run.attrs['jobsize']} ranks on {machine}: {status}\n")
if "phases" not in run:
    sys.exit("this is not the record of a training run of chorale: it has no group /phases")

# Step 2: read columns of a table. A group is a table, and the variables of the group are the columns. If the run was killed,
# the last rows may be uncommitted.
train = run["train"]
rows = int(train.attrs["committed_rows"])
steps, loss, speed = (train[name][:rows] for name in ("step", "loss", "tokens_per_s"))

# Step 3: check the record. If steps are missing or a loss is NaN, the record is damaged.
if rows == 0 or list(steps) != list(range(steps[0], steps[0] + rows)) or not (loss > 0).all():
    sys.exit("the record is damaged: steps are missing, or a loss is not a number")

# Step 4: draw the loss. Each line shows the mean loss over several steps.
lines = min(12, rows)
means = [(steps[i * rows // lines], loss[i * rows // lines:(i + 1) * rows // lines].mean()) for i in range(lines)]
top = max(mean for _, mean in means)
for step, mean in means:
    print(f"step {step:5}  loss {mean:7.4f}  {'#' * round(50 * mean / top)}")

# Step 5: print the mean time of each phase over all steps, for each rank. Phases are stored as integer codes; the attribute
# flag_meanings lists the names of the phases.
phases = run["phases"]
seconds = phases["phase_time"][:int(phases.attrs["committed_rows"])].mean(axis=0)
names = phases["phase"].attrs["flag_meanings"].decode().split()
print("\nmilliseconds of a step, by rank")
for phase, name in enumerate(names):
    print(f"  {name:13}" + "".join(f"{1000 * time:9.2f}" for time in seconds[:, phase]))
print(f"\n{rows} steps, {speed.mean():.0f} tokens/s, the last loss {loss[-1]:.4f}")
