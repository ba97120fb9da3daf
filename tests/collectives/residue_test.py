"""Runs residue_test.cpp over TCP with small socket buffers. With small buffers, data often remain in UCX after a send."""
import os
import unittest

from programs import backends, ranks, tests_run


class Residue(unittest.TestCase):
    @unittest.skipUnless("ucx" in backends(), "UCX does not work here")
    def test_ucx_is_moved_while_its_sender_waits_in_mpi(self):
        done = ranks(2, tests_run, "a message reaches a late rank*", BACKENDS="ucx", TEST_LIMIT="60",
                     UCX_TLS="tcp,self", UCX_TCP_SNDBUF="64k", UCX_TCP_RCVBUF="64k")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
