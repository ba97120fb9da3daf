"""A base class for test cases that run the program `chorale`. Each case has its own folder."""
import tempfile
import unittest

from programs import chorale, start


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def run_it(self, *words):
        result = start([chorale, *words], XDG_CACHE_HOME=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, *words, says):
        result = start([chorale, *words], XDG_CACHE_HOME=self.folder)
        self.assertEqual(result.returncode, 2, result.stdout)
        lines = result.stderr.splitlines()
        self.assertTrue(lines[-3].startswith("error: "), result.stderr)  # progress lines may come before the error
        for part in says:
            self.assertIn(part, result.stderr)
