"""Counts the trials of a test that chaos.py runs. At the end of the test prints:

   chaos: 20 tried, 1 failed
"""
import contextlib


class Trials:
    def __init__(self, test):
        self.test, self.tried, self.failed = test, 0, 0
        test.addCleanup(lambda: print(f"chaos: {self.tried} tried, {self.failed} failed", flush=True))

    @contextlib.contextmanager
    def one(self, **about):
        """A trial: it fails if its block raises. The next trial goes on."""
        with self.test.subTest(**about):
            self.tried, self.failed = self.tried + 1, self.failed + 1
            yield
            self.failed -= 1
