"""Tests import and export of Hugging Face models and tokenizers as a user sees them. Training, records, resumed runs and
exported models must agree."""
import json
import os
import tempfile
import unittest

import h5py

from programs import chorale, launch, ranks, sample, start

short = ["--threads", "1", "--eval-samples", "2", "--global-batch-size", "2"]


class HuggingFace(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def done(self, *words):
        result = start([chorale, *words])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, *words, says):
        result = start([chorale, *words])
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 3, result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def train(self, *words):
        self.done("train", *short, *words, "--run-dir", f"{self.folder}/runs")
        return os.path.realpath(f"{self.folder}/runs/latest")

    def model(self, *words, name="model"):
        run = self.train("--train-iters", "1", *words)
        self.done("export", "--load", run, "--out", f"{self.folder}/{name}")
        return f"{self.folder}/{name}"

    def changed(self, model, **keys):
        path = f"{model}/config.json"
        with open(path) as file:
            config = json.load(file)
        config.update(keys)
        with open(path, "w") as file:
            json.dump(config, file)

    def config_of(self, run):
        with h5py.File(f"{run}/run.h5") as file:
            toml = file["config/toml"][()]
            toml = toml.decode() if isinstance(toml, bytes) else str(toml)
        return dict(line.split(" = ", 1) for line in toml.splitlines())

    def test_a_run_goes_on_in_the_shape_of_its_checkpoint(self):
        run = self.train("--preset", "tiny-llama", "--num-layers", "2", "--norm-epsilon", "1e-6", "--dropout", "0.1",
                         "--train-iters", "2")
        again = self.train("--load", run, "--train-iters", "3")  # only the checkpoint states the model's shape
        config = self.config_of(again)
        for option, value in (("family", '"llama"'), ("num-layers", "2"), ("hidden-size", "96"), ("num-query-groups", "4"),
                              ("norm-epsilon", "1e-06"), ("untie-embeddings", "true"), ("dropout", "0.1")):
            self.assertEqual(config[option], value)
        self.train("--load", f"{again}/checkpoints/step-3", "--num-layers", "2", "--train-iters",
                   "4")  # an option is accepted if it equals the model's value
        for words, says in ((["--num-layers", "4"],
                             ["num-layers is given as 4 (command line), but is 2 in", "leave --num-layers out"]),
                            (["--norm-epsilon", "1e-5"], ["norm-epsilon is given as 1e-05", "1e-06"]),
                            (["--preset", "nano"], ["(preset nano)", "leave --preset out"]),
                            (["--hidden-size", "100"], ["hidden-size is given as 100", "96"])):
            self.refused("train", "--load", again, *words, says=[*says, again])

    def test_a_run_begun_with_their_weights_is_recorded_and_goes_on(self):
        model = self.model("--preset", "tiny", "--num-layers", "2")
        self.changed(model, layer_norm_epsilon=1e-6, activation_function="gelu_pytorch_tanh", attn_pdrop=0.3, embd_pdrop=0.1)
        run = self.train("--load-hf", model, "--train-iters", "2")
        config = self.config_of(run)
        self.assertEqual([config[name] for name in ("num-layers", "hidden-size", "norm-epsilon", "seq-length")],
                         ["2", "96", "1e-06", "24"])
        with open(f"{run}/checkpoints/step-2/manifest.json") as file:
            self.assertEqual(json.load(file)["manifest"]["metadata"]["model"]["epsilon"], 1e-6)
        again = self.train("--config", f"{run}/config.toml", "--load", run, "--train-iters", "3")
        with h5py.File(f"{again}/run.h5") as file:
            self.assertEqual(list(file["train/step"]), [3])
        self.assertEqual(self.config_of(again)["load-hf"], '""')
        self.train("--config", f"{run}/config.toml", "--train-iters", "1")  # starts again from the imported weights
        self.done("export", "--load", again, "--out", f"{self.folder}/out")
        with open(f"{self.folder}/out/config.json") as file:
            self.assertEqual(json.load(file)["layer_norm_epsilon"], 1e-6)

    def test_a_model_that_brings_its_shape_is_told_no_other(self):
        model = self.model("--preset", "tiny", "--num-layers", "2")
        for words, says in ((["--preset", "gpt3-175b"], ["(preset gpt3-175b)", "leave --preset out"]),
                            (["--preset", "tiny"], ["leave --preset out"]),
                            (["--num-layers", "3"], ["num-layers is given as 3", "is 2 in"]),
                            (["--norm-epsilon", "1e-4"], ["leave --norm-epsilon out"]),
                            (["--seq-length", "25"], ["seq-length is given as 25", "24", "ask for 24 at most"])):
            self.refused("train", "--load-hf", model, *words, says=[*says, "the loaded model sets the shape", model])
        self.refused("train", "--load", model, says=["is a Hugging Face model", f"--load-hf {model}"])

    def test_sequences_may_be_shorter_than_the_model_has(self):
        for preset in ("tiny", "tiny-llama"):
            with self.subTest(preset=preset):
                model = self.model("--preset", preset, "--num-layers", "1", name=preset)
                if preset == "tiny-llama":
                    self.changed(model, max_position_embeddings=131072, rope_scaling={"rope_type": "default"})
                run = self.train("--load-hf", model, "--seq-length", "12", "--train-iters", "1")
                self.assertEqual(self.config_of(run)["seq-length"], "12")
                self.train("--config", f"{run}/config.toml", "--load", run, "--train-iters", "2")
                self.done("export", "--load", run, "--out", f"{self.folder}/{preset}-short")

    def check_layouts(self, model, layouts):
        losses = {}
        for count, layout in ((1, "dp1"), *layouts):
            folder = f"{self.folder}/{os.path.basename(model)}-{layout}"
            result = ranks(count, chorale, "train", *short, "--numerics", "exact", "--load-hf", model, "--train-iters", "2",
                           "--layout", layout, "--run-dir", folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            with h5py.File(f"{folder}/latest/run.h5") as file:
                losses[layout] = list(file["train/loss"])
        self.assertEqual(len({str(of_layout) for of_layout in losses.values()}), 1, losses)

    def test_ranks_that_read_their_parts_train_as_one(self):
        self.check_layouts(self.model("--preset", "tiny", "--num-layers", "2"),
                           ((4, "tp4"), (4, "dp2.tp2.z3"), (4, "pp2.dp2.z1")))

    def test_ranks_that_read_their_experts_train_as_one(self):
        for name, words, says in sample((("qwen", ["--qk-layernorm", "--kv-channels", "16", "--moe-router-pre-softmax"],
                                          "a qwen3_moe model"),
                                         ("mixtral", ["--expert-interval", "1"], "a mixtral model")), 2):
            run = self.train("--preset", "tiny-moe", "--num-layers", "2", "--moe-shared-expert-intermediate-size", "0",
                             *words, "--train-iters", "1")
            model = f"{self.folder}/{name}"
            self.assertIn(says, self.done("export", "--load", run, "--out", model).stdout)
            self.check_layouts(model, ((4, "dp2.tp2.ep2"), (2, "dp2.ep2.z3"), (4, "pp2.dp2.ep2.z1")))
            begun = self.train("--load-hf", model, "--train-iters", "1")
            config = self.config_of(begun)
            self.assertEqual((config["num-experts"], config["qk-layernorm"], config["kv-channels"]),
                             ("4", "true", "16") if name == "qwen" else ("4", "false", "0"))

    def test_a_model_with_a_shared_expert_is_not_exported(self):
        run = self.train("--preset", "tiny-moe", "--num-layers", "2", "--train-iters", "1")
        self.refused("export", "--load", run, "--out", f"{self.folder}/m", says=["Hugging Face has no such model",
                                                                                "shared-expert-intermediate-size 32"])
        self.assertFalse(os.path.exists(f"{self.folder}/m"))

    # 12.8 million parameters are 49 MiB in f32. Under tp4, a rank holds a quarter of the weights, of the gradients and of
    # two moments. If a rank read all weights, the rank would need 49 MiB more, and another 49 MiB for the pages of the
    # mapped file.
    def test_weights_are_read_within_the_memory_of_a_rank(self):
        shape = ["--num-layers", "2", "--hidden-size", "384", "--num-attention-heads", "8", "--vocab-size", "24000",
                 "--seq-length", "16"]
        model = self.model(*shape)
        # Every rank writes a separate file, because mpirun can interleave the ranks' output.
        script = ("import os, resource, subprocess, sys\nsubprocess.run(sys.argv[2:], check=True)\n"
                  "with open(os.path.join(sys.argv[1], str(os.getpid())), 'w') as file:\n"
                  "    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=file)")
        most = {}
        for words in (["--load-hf", model], shape):
            sizes = tempfile.mkdtemp(dir=self.folder)
            result = start([*launch, "-n", "4", "/usr/bin/python3", "-c", script, sizes, chorale, "train", *short, *words,
                            "--train-iters", "1", "--no-save",
                            "--layout", "tp4", "--memory-limit", "96M", "--run-dir", f"{self.folder}/runs"])
            self.assertEqual(result.returncode, 0, result.stderr)
            most[words[0]] = max(int(open(f"{sizes}/{name}").read()) for name in os.listdir(sizes))
        self.assertLess(most["--load-hf"], most["--num-layers"] + 24 * 1024, most)  # KiB

    def test_a_tokenizer_goes_with_its_model(self):
        book, vocabulary = f"{self.folder}/book.txt", f"{self.folder}/book.bpe"
        with open(book, "w") as file:
            file.write("the cat sat on the mat and the dog sat on the log. " * 200)
        self.done("data", "train-bpe", book, "--vocabulary", "280", "--out", vocabulary)
        self.done("data", "tokenize", book, "--tokenizer", vocabulary)
        run = self.train("--preset", "tiny", "--data", f"{self.folder}/book.bin", "--tokenizer", vocabulary, "--vocab-size",
                         "280", "--train-iters", "1")
        self.done("generate", "--load", run, "--prompt", "the cat", "--tokens", "3")  # works because the run has a tokenizer
        again = self.train("--load", run, "--data", f"{self.folder}/book.bin", "--train-iters", "2")
        model = f"{self.folder}/model"
        self.assertIn("with the tokenizer of",
                      self.done("export", "--load", f"{again}/checkpoints/step-2", "--out", model).stdout)
        with open(f"{model}/tokenizer.json") as kept, open(vocabulary) as made:
            self.assertEqual(kept.read(), made.read())
        with open(f"{model}/tokenizer_config.json") as file:
            self.assertEqual(json.load(file)["tokenizer_class"], "PreTrainedTokenizerFast")
        texts = [self.done("generate", "--load", place, "--prompt", "the cat", "--tokens", "9", "--temperature", "0").stdout
                 for place in (again, model)]
        self.assertEqual(texts[0], texts[1])
        self.assertTrue(texts[0].startswith("the cat"))
        self.assertIn(" ", self.done("generate", "--load", model, "--tokenizer", "none", "--prompt", "1,2", "--tokens",
                                     "2").stdout)
        # The export must include all tokenizer files of the imported model.
        with open(f"{model}/special_tokens_map.json", "w") as file:
            file.write("{}")
        tuned = self.train("--load-hf", model, "--train-iters", "1")
        self.done("export", "--load", tuned, "--out", f"{self.folder}/tuned")
        self.assertEqual(sorted(os.listdir(f"{self.folder}/tuned")), sorted(os.listdir(model)))

    def test_a_tokenizer_that_does_not_fit_is_refused(self):
        book, vocabulary = f"{self.folder}/book.txt", f"{self.folder}/book.bpe"
        with open(book, "w") as file:
            file.write("the cat sat on the mat. " * 200)
        self.done("data", "train-bpe", book, "--vocabulary", "270", "--out", vocabulary)
        self.done("data", "tokenize", book, "--tokenizer", "bytes")
        self.refused("train", "--preset", "tiny", "--vocab-size", "260", "--data", f"{self.folder}/book.bin", "--tokenizer",
                     vocabulary, says=[f"{vocabulary} has 268 tokens, the model 260"])
        self.refused("train", "--preset", "tiny", "--tokenizer", "bytes",
                     says=["tokenizer has no effect here", "synthetic data is not text"])
        run = self.train("--preset", "tiny", "--num-layers", "1", "--train-iters", "1")
        self.refused("export", "--load", run, "--out", f"{self.folder}/m", "--tokenizer", f"{self.folder}/none",
                     says=["no such tokenizer"])
        self.assertFalse(os.path.exists(f"{self.folder}/m"))
        self.assertIn("without a tokenizer", self.done("export", "--load", run, "--out", f"{self.folder}/m").stdout)
        with open(f"{self.folder}/m/tokenizer.json", "w") as file:
            file.write('{"model": {"type": "Unigram"}}')
        self.done("generate", "--load", f"{self.folder}/m", "--prompt", "1,2", "--tokens", "2")  # works without a tokenizer
        self.refused("generate", "--load", f"{self.folder}/m", "--prompt", "the",
                     says=['"the" is not a number', "not a supported byte-level tokenizer"])
        for prompt, says in (("5,7,90000", "90000 of a vocabulary of "), ("-1", "give numbers from 0 to "),
                             ("1 2 3", "give numbers with commas, as in --prompt 5,7,9")):
            self.refused("generate", "--load", run, "--tokenizer", "none", f"--prompt={prompt}", says=[says])

    def test_pickles_are_not_opened(self):
        model = self.model("--preset", "tiny", "--num-layers", "1")
        os.rename(f"{model}/model.safetensors", f"{model}/pytorch_model.bin")
        self.refused("train", "--load-hf", model, says=["the weights are a pickle", "pytorch_model.bin", "save_pretrained"])


if __name__ == "__main__":
    unittest.main()
