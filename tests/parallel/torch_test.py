"""Trains the same model on the same batches with PyTorch. Losses, gradients of some steps, and exported logits must agree
with Chorale's results."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from programs import start, tests_run

try:
    import torch
    import torch_models
except ImportError:
    torch = None


@unittest.skipUnless(torch, "python3-torch is not installed")
class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        result = start([tests_run, "[torch]"], TEST_FOLDER=cls.folder.name)
        assert result.returncode == 0, result.stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def read(self, preset, name):
        return torch_models.read_folder(os.path.join(self.folder.name, preset, name))

    def numbers(self, preset):
        with open(os.path.join(self.folder.name, preset, "numbers.json")) as file:
            return json.load(file)

    def train(self, preset, precision=1e-4):
        config, parameters = self.read(preset, "start")
        numbers = self.numbers(preset)
        matrices = [p for p in parameters.values() if p.dim() > 1]
        vectors = [p for p in parameters.values() if p.dim() == 1]
        optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": numbers["decay"]},
                                       {"params": vectors, "weight_decay": 0.0}],
                                      betas=(numbers["beta1"], numbers["beta2"]), eps=numbers["epsilon"])
        length = len(numbers["text"])
        for i, step in enumerate(numbers["steps"]):
            ids, targets = (torch.tensor(step[k]).view(-1, length) for k in ("ids", "targets"))
            optimizer.zero_grad()
            routers = []
            logits = torch_models.logits(config, parameters, ids, routers)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
            more = torch_models.router_losses(config, routers, numbers["balance"], numbers["z"]) / step["tokens"]
            (loss + more).backward()
            self.assertLessEqual(abs(step["loss"] - loss.item()), 1e-5 * loss.item(), f"loss of step {i}")
            self.compare_gradients(preset, i, parameters, step["tokens"], precision)
            norm = torch.nn.utils.clip_grad_norm_(parameters.values(), numbers["clip"]).item()
            self.assertAlmostEqual(step["norm"] / norm, 1, places=4)
            for group in optimizer.param_groups:
                group["lr"] = step["rate"]
            optimizer.step()

    def compare_gradients(self, preset, i, parameters, tokens, precision):
        _, ours = self.read(preset, f"gradient-{i}")  # gradients of the summed loss, not of the mean loss
        self.assertEqual(set(ours), set(parameters))
        whole = torch.sqrt(sum(p.grad.norm() ** 2 for p in parameters.values()))
        for name, p in parameters.items():
            off = (ours[name] / tokens - p.grad).norm()
            self.assertLessEqual(off, precision * max(p.grad.norm(), 1e-3 * whole), f"gradient of {name} in step {i}")

    def test_ten_steps_of_gpt2_are_ours(self):
        self.train("tiny")

    def test_ten_steps_of_llama_are_ours(self):
        self.train("tiny-llama")

    def test_three_steps_of_models_with_experts_are_ours(self):
        for model in ("mixtral", "mixtral-losses", "qwen3-moe", "qwen3-moe-not-normalized"):
            with self.subTest(model):
                self.train(model, 1e-9)

    def test_logits_of_an_exported_model_are_ours(self):
        for preset in ("tiny", "tiny-llama", "mixtral", "qwen3-moe"):
            with self.subTest(preset), torch.no_grad():
                numbers = self.numbers(preset)
                config, parameters = self.read(preset, "end")
                theirs = torch_models.logits(config, parameters, torch.tensor([numbers["text"]]))[0]
                ours = torch.tensor(numbers["logits"], dtype=theirs.dtype)
                self.assertLessEqual((ours - theirs).norm(), 1e-5 * theirs.norm())


if __name__ == "__main__":
    unittest.main()
