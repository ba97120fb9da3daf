"""Counts the trials of a test that tests/chaos.py runs. At the end of the test case, even if the case fails, prints a line
such as:

   chaos: 20 tried, 1 failed
"""
import contextlib


class Tally:
    def __init__(self, case):
        self.case, self.tried, self.failed = case, 0, 0
        case.addCleanup(self.tell)

    def tell(self):
        print(f"chaos: {self.tried} tried, {self.failed} failed", flush=True)

    @contextlib.contextmanager
    def trial(self, *message, **facts):
        """A trial, in the form of unittest's subTest. After a failed trial, later trials still run."""
        self.tried += 1
        with self.case.subTest(*message, **facts):
            try:
                yield
            except Exception:
                self.failed += 1
                raise
