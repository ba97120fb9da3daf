"""Runs collectives where the kernel forbids copies between processes, as some containers do. A seccomp filter makes the two
system calls fail. Then ordinary buffers must be staged, on every rank, with the right results."""
import ctypes
import os
import platform
import struct
import sys
import unittest

import programs
from programs import chorale, launch, start, tests_run

calls = {"x86_64": (310, 311), "aarch64": (270, 271)}.get(platform.machine())  # process_vm_readv, process_vm_writev
no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
load, jump_if_equal, end = 0x20, 0x15, 0x06
allow, refuse = 0x7FFF0000, 0x00050001  # EPERM


def forbid(numbers):
    """Makes these system calls fail in this process and in all programs that it starts."""
    program = [(load, 0, 0, 0)]
    program += [(jump_if_equal, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    program += [(end, 0, 0, allow), (end, 0, 0, refuse)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, filter_mode, header, 0, 0):
        sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")


@unittest.skipUnless(calls, f"the numbers of the system calls are not known on {platform.machine()}")
class ForbiddenCopies(unittest.TestCase):
    def run_without(self, numbers, *command):
        start_it = [sys.executable, os.path.abspath(__file__), ",".join(map(str, numbers)), *command]
        return start(start_it, OMPI_MCA_btl_vader_single_copy_mechanism="none",
                     PYTHONPATH=os.path.dirname(os.path.abspath(programs.__file__)))

    def test_info_says_so(self):
        for numbers in (calls, calls[:1], calls[1:]):
            done = self.run_without(numbers, chorale, "info")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, "shm .*no process_vm_(read|write)v")

    def test_ordinary_buffers_are_staged(self):
        for numbers in (calls, calls[1:]):
            done = self.run_without(numbers, *launch, "-n", "3", tests_run,
                                    "results are right whichever messages*,a float sum has the same bits*,"
                                    "exchanges of ordinary buffers*")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("3 passed, 0 failed", done.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1].replace(",", "").isdigit() or sys.argv[1:2] == [""]:
        if sys.argv[1]:
            forbid([int(number) for number in sys.argv[1].split(",")])
        os.execvp(sys.argv[2], sys.argv[2:])
    unittest.main()
