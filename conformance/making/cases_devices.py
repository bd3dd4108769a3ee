"""Images of devices: what the firmware of `embedded-tests` leaves in its memory, played here step by step.

The emulated boards must give the same bytes (`embedded-tests/run`), so these are dumps of a debugger as well.
"""

from making import parts
from making.image import Image, record

RATE = 32_768
FROM_INTERRUPT = 1 << 40


class Device(Image):
    """An image without a wall clock. The clock of the firmware goes 1000 ticks on with each look."""

    def __init__(self, capacity):
        super().__init__(capacity, [parts.CLOCK], time_base=1, created=0)
        self.parts.clock.update(source=4, quality=2, rate=RATE, anchor_ticks=0, anchor_us=0)
        self.store()
        self.looks = 0

    def look(self):
        self.looks += 1
        return self.looks * 1000 * 1_000_000 // RATE

    def event(self, name, category, value, *, time=None):
        self.batch([record(name, category, value, self.look() if time is None else time)])

    def reset(self):
        """The start-up code makes the clock anew and leaves the image alone."""
        self.looks = 0
        self.attach()

    def close(self):
        self.time = self.look() - 1
        super().close()


def record_and_wrap(image):
    """100 events into 64 places, every fourth from the interrupt."""
    while image.committed < 100:
        number = image.committed
        if number % 4 == 3:
            image.event("interrupt", 7, FROM_INTERRUPT + number)
        else:
            image.event("main_step", 7, number)


def crash(image):
    """Three records announced, one finished, half of the next, and then the reset."""
    image.announce(3)
    image.put(100, record("main_step", 7, 100, 1))
    image.put(101, record("main_step", 7, 101, 1), only=32)


def black_box():
    image = Device(64)
    record_and_wrap(image)
    yield "device_before_crash", image.data, image.whole(), "times since boot, 36 events overwritten"
    crash(image)
    yield "device_crashed", image.data, image.whole(), "a core stopped in the middle of a batch: three announced, one and a half written"
    image.reset()
    for number in range(5):
        image.event("agent_tx_bytes", 1, 1500 + number)
    yield "device_after_crash", image.data, image.whole(), "taken up after the reset: three fillers, then events of the second boot"
    looks = image.looks
    image = Device(16)
    image.looks = looks
    for value in range(7):
        image.event("main_step", 7, value)
    image.close()
    yield "device_small", image.data, image.whole(), "16 events in 1216 bytes, closed"


def in_c():
    image = Device(16)
    for number in range(20):
        image.event("c_step", 7, number)
    image.reset()
    for number in range(3):
        image.event("agent_tx_bytes", 1, (1 << 32) + number)
    image.control["heartbeat"] = image.look()
    image.store()
    yield "device_in_c", image.data, image.whole(), "firmware in C: taken up after a reset that interrupted nothing"


CASES = (black_box, in_c)
