"""Tests `chorale data` as a user sees it. Covers the conversion of text to tokens and back, the description of a token file,
and errors."""
import array
import json
import os
import struct
import tempfile
import unittest

from programs import chorale, start

text = "".join(f"How much wood would a woodchuck chuck, {n} times, naïve or not?\n\n" for n in range(300))


def data(*words):
    return start([chorale, "data", *words])


def tokens_of(file):
    """Reads llm.c's token format without using the program's code."""
    with open(file, "rb") as stream:
        content = stream.read()
    magic, version, count = struct.unpack("<iii", content[:12])
    assert (magic, version) == (20240520, 1), (magic, version)
    tokens = array.array("H", content[1024:])
    assert len(tokens) == count
    return list(tokens)


class Data(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.book = f"{self.folder}/book.txt"
        with open(self.book, "w", encoding="utf-8") as file:
            file.write(text)

    def done(self, *words):
        result = data(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, *words, says):
        result = data(*words)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 3, result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def test_bytes_are_tokens(self):
        self.assertIn("1.00 bytes per token", self.done("tokenize", self.book))
        self.assertEqual(bytes(tokens_of(f"{self.folder}/book.bin")), text.encode())
        self.assertEqual(sorted(os.listdir(self.folder)), ["book.bin", "book.txt"])  # no temporary files

    def test_a_vocabulary_is_learned_and_used(self):
        vocabulary = f"{self.folder}/some.bpe"
        self.assertIn("300 tokens", self.done("train-bpe", self.book, "--vocabulary", "300", "--out", vocabulary))
        self.done("tokenize", self.book, "--tokenizer", vocabulary)
        tokens = tokens_of(f"{self.folder}/book.bin")
        self.assertLess(len(tokens), len(text) / 2)
        with open(vocabulary, encoding="utf-8") as file:  # the test decodes tokens only with this file
            model = json.load(file)["model"]
        self.assertEqual(sorted(model["vocab"].values()), list(range(300)))
        self.assertEqual(len(model["merges"]), 44)
        word = {token: text for text, token in model["vocab"].items()}
        joined = "".join(word[token] for token in tokens)
        self.assertEqual(joined.replace("Ġ", " ").replace("Ċ", "\n").replace("Ã¯", "ï"), text)
        shown = self.done("show", f"{self.folder}/book.bin", "--tokenizer", vocabulary)
        self.assertIn(f"tokens        {len(tokens)}\n", shown)
        self.assertIn(f"distinct      {len(set(tokens))}\n", shown)
        self.assertIn(f"largest       {max(tokens)}:", shown)
        self.assertIn('"How much wood', shown)
        frequent = max(sorted(set(tokens)), key=tokens.count)
        self.assertRegex(shown, rf"most frequent\n +{frequent} +{tokens.count(frequent)} ")
        self.assertNotIn("as text", self.done("show", f"{self.folder}/book.bin"))
        self.refused("show", f"{self.folder}/book.bin", "--tokenizer", "bytes", says=["at position", "vocabulary has 256"])

    def test_a_short_text_gives_what_it_has(self):
        self.assertIn("no other pair of tokens occurs twice", self.done("train-bpe", self.book, "--vocabulary", "100000"))

    def test_the_floor_is_printed(self):
        lines = self.done("floor", "--vocabulary", "480", "--seed", "7").splitlines()[2:]
        start_at, alone, floor, rate = (float(line.split()[0]) for line in lines)
        self.assertGreater(start_at, alone)
        self.assertGreater(alone, 1.1 * floor)
        self.assertAlmostEqual(floor, rate, delta=0.02 * rate)
        self.assertNotEqual(self.done("floor"), self.done("floor", "--seed", "2"))

    def test_what_cannot_be_is_refused(self):
        self.refused(says=["data needs an action", "tokenize, train-bpe, show, floor"])
        self.refused("tokenise", self.book, says=['did you mean "tokenize"?'])
        self.refused("tokenize", says=["takes one file", "0 were given"])
        self.refused("floor", self.book, says=["takes no file"])
        self.refused("tokenize", f"{self.folder}/no.txt", says=["No such file"])
        self.refused("tokenize", self.book, "--out", self.book, says=["would overwrite its source"])
        self.refused("tokenize", self.book, "--out", f"{self.folder}/no/book.bin",
                     says=["cannot be written", "No such file"])
        self.refused("tokenize", self.book, "--tokenizer", self.book, says=["is not a supported byte-level tokenizer"])
        self.refused("train-bpe", self.book, "--vocabulary", "100", says=["choose 256"])
        self.refused("show", self.book, says=["is not a token file", "chorale data tokenize"])
        open(self.book, "w").close()
        self.refused("tokenize", self.book, says=["it is empty"])


if __name__ == "__main__":
    unittest.main()
