"""A telering agent in this process, through the small library of interop/guest."""

import ctypes
import json


class Guest:
    """Without a folder, the environment alone says what the agent does."""

    def __init__(self, library, name, folder=None):
        self.library = ctypes.CDLL(str(library))
        self.library.telering_guest_start.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        self.library.telering_guest_start.restype = ctypes.c_int
        self.library.telering_guest_record.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        self.library.telering_guest_record.restype = ctypes.c_uint64
        self.library.telering_guest_stop.restype = ctypes.c_int
        self.library.telering_guest_report.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self.library.telering_guest_report.restype = ctypes.c_size_t
        self.library.telering_guest_start_plain.argtypes = [ctypes.c_char_p]
        self.library.telering_guest_moved.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64]
        self.library.telering_guest_moved.restype = None
        self.library.telering_guest_memory.argtypes = [ctypes.c_int, ctypes.c_uint64]
        self.library.telering_guest_memory.restype = None
        self.library.telering_guest_error.argtypes = [ctypes.c_int]
        if folder is None:
            failed = self.library.telering_guest_start_plain(str(name).encode())
        else:
            failed = self.library.telering_guest_start(str(name).encode(), str(folder).encode())
        if failed:
            raise RuntimeError("the telering agent did not start; its reason is on the error output")

    def record(self, count, per_second=0):
        """Records `count` transfers; number n of them (from 0) has values that n fixes. 0 per second: flat out."""
        return self.library.telering_guest_record(count, per_second)

    def moved(self, writes, size, post_us, xfer_us):
        """Records a transfer that somebody else made and timed."""
        self.library.telering_guest_moved(int(writes), size, post_us, xfer_us)

    def memory(self, registered, size):
        self.library.telering_guest_memory(int(registered), size)

    def error(self, code):
        if self.library.telering_guest_error(code) != 0:
            raise ValueError(f"{code} is no error of NIXL's")

    def report(self):
        """{"path", "mode", "address", "metrics", "recorded", "exported", "lost", "warnings"} as of now, or as of the stop."""
        buffer = ctypes.create_string_buffer(1 << 16)
        self.library.telering_guest_report(buffer, len(buffer))
        return json.loads(buffer.value)

    def stop(self):
        self.library.telering_guest_stop()
        return self.report()


def told(report):
    """The warnings that concern the check. A machine without a trusted counter is told so, rightly."""
    return [warning for warning in report["warnings"] if not warning.startswith("clock:")]


def values(number):
    """The values of transfer `number`: (post time, transfer time, bytes, writes?), as the library computes them."""
    return number % 97 + 1, number % 97 + 1 + number % 1009, number * 3 + 1, number % 3 != 2


def events(number):
    post, total, size, writes = values(number)
    direction = "tx" if writes else "rx"
    return [
        ("agent_xfer_post_time", post),
        ("agent_xfer_time", total),
        (f"agent_{direction}_bytes", size),
        (f"agent_{direction}_requests_num", 1),
    ]
