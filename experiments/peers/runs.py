"""Trains the preset nano in chorale, for the comparisons with PyTorch in this folder."""
import json
import os
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def train(start, layout, dtype, sequences, steps):
    """Calls start() with the command's words. Returns its result, and the rows of all steps except the first two."""
    with tempfile.TemporaryDirectory() as folder:
        result = start(f"{root}/build/chorale", "train", "--preset", "nano", "--dtype", dtype, "--layout", layout,
                       "--global-batch-size", str(sequences), "--train-iters", str(steps), "--threads", "1",
                       "--eval-samples", "1", "--no-save", "--run-dir", folder)
        with open(os.path.join(folder, "latest", "metrics.jsonl")) as lines:
            return result, [row for row in map(json.loads, lines) if "tokens_per_s" in row][2:]
