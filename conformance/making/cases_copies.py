"""Copies of live files and records that are not what they should be: sections 11 and 12 of FORMAT.md.

A copy is made here as `cp` makes it: pieces in the order of the bytes, with a producer at work between them.
"""

from making import parts
from making.image import Image, record


class Copy:
    """A plain copy of an image that goes on changing. It knows which position stands whole in each slot."""

    def __init__(self, image):
        self.image, self.done = image, 0
        self.data = bytearray(len(image.data))
        self.slots = [None] * image.capacity
        self.pieces = [None] * image.capacity

    def until(self, end):
        """Copies on, up to an offset."""
        self.data[self.done : end] = self.image.data[self.done : end]
        for slot in range(self.image.capacity):
            first, last = 40 + 56 * slot, 96 + 56 * slot
            now = self.image.slots[slot]
            if self.done <= first and last <= end:
                self.slots[slot] = now
            elif self.done <= first < end:
                self.pieces[slot] = now
            elif first < self.done < last <= end:
                self.slots[slot] = now if now == self.pieces[slot] else None
        self.done = end

    def until_slot(self, slot, byte=0):
        self.until(40 + 56 * slot + byte)

    def answer(self, committed, intent):
        """What a reader must find, by section 12."""
        image, capacity = self.image, self.image.capacity
        image.committed = committed
        start = max(0, intent - capacity)
        promised = list(range(start, committed))
        there = [position for position in promised if self.slots[position % capacity] == position]
        unverified = len(promised) - len(there)
        earlier, lost = [], 0
        if unverified:
            back = range(max(0, start - 2 * capacity), start)
            earlier = [position for position in back if self.slots[position % capacity] == position]
            if earlier:
                lost = start - earlier[0] - len(earlier)
                start = earlier[0]
        events, interrupted = image.judge(earlier + there)
        image.intent = intent
        return image.answer(start, events, lost=lost, unverified=unverified, interrupted=interrupted)


def copied(capacity, before, steps, *, kinds=()):
    """A copy with the producer at `before` when it begins and going on by so many records at each slot of `steps`."""
    image = Image(capacity, kinds)
    image.fill(before)
    copy = Copy(image)
    for slot, byte, count in steps:
        copy.until_slot(slot, byte)
        image.fill(image.committed + count)
    copy.until(len(image.data))
    return copy, copy.answer(image.committed, image.intent)


def taken_live():
    cases = {
        "half_a_lap": (64, 100, [(32, 0, 20)], "20 more records while half the ring was copied"),
        "one_lap": (64, 100, [(32, 0, 64)], "exactly one lap in the middle of the copy"),
        "more_than_a_lap": (64, 200, [(32, 0, 90)], "a lap and a half in the middle of the copy"),
        "two_laps": (64, 300, [(32, 0, 128)], "two laps in the middle of the copy"),
        "three_laps": (64, 300, [(32, 0, 192)], "three laps: what was copied first is too old to be told"),
        "step_by_step": (64, 150, [(8, 0, 10), (16, 0, 10), (24, 0, 10), (32, 0, 10), (40, 0, 10)], "a producer a little slower"),
        "faster_than_the_copy": (16, 40, [(slot, 0, 5) for slot in range(1, 16)], "5 records while each one was copied"),
        "two_laps_in_steps": (16, 100, [(slot, 0, 2) for slot in range(1, 16)], "2 records while each one was copied"),
        "first_lap": (64, 10, [(5, 0, 30)], "a ring that was not full yet"),
        "from_nothing": (64, 0, [(32, 0, 64)], "nothing was written when the copy began"),
        "around_zero": (64, 60, [(32, 0, 10)], "the positions looked back at begin at 0"),
        "quiet": (64, 100, [], "nothing changed meanwhile: an ordinary dead file"),
    }
    for name, (capacity, before, steps, about) in cases.items():
        copy, answer = copied(capacity, before, steps)
        yield f"copy_{name}", copy.data, answer, about
    for byte in (8, 12, 44, 48):
        copy, answer = copied(64, 100, [(50, byte, 64)])
        yield f"copy_torn_at_{byte}", copy.data, answer, f"a record of which the first {byte} bytes are a lap older than the rest"
    copy, answer = copied(64, 120, [(10, 20, 64), (30, 20, 64)])
    yield "copy_torn_twice", copy.data, answer, "two records that are mixed from two laps"
    copy, _ = copied(64, 120, [(10, 0, 90)])
    copy.image.close()
    copy.data[copy.image.extension :] = copy.image.data[copy.image.extension :]
    answer = copy.answer(copy.image.committed, copy.image.intent)
    yield "copy_of_closing", copy.data, answer, "the producer closed the file while it was copied"


def with_fillers():
    image = Image(16)
    image.fill(20)
    for _ in range(3):
        image.announce(1)
        image.attach()
        image.fill(image.committed + 2)
    copy = Copy(image)
    copy.until_slot(14)
    image.fill(image.committed + 12)
    copy.until(len(image.data))
    yield "copy_with_fillers", copy.data, copy.answer(image.committed, image.intent), "fillers of an earlier lap in a copy of a live file"


def control_words():
    """Control words of two moments: intent is copied before committed."""
    for name, more in (("one", 1), ("half", 32), ("lap", 64)):
        image = Image(64)
        image.fill(100)
        copy = Copy(image)
        copy.until(image.extension + 72)
        image.fill(100 + more)
        copy.until(len(image.data))
        about = f"committed is {more} above intent, as in a copy: take intent = committed"
        yield f"copy_committed_ahead_{name}", copy.data, copy.answer(100 + more, 100 + more), about
    image = Image(64)
    image.fill(100)
    copy = Copy(image)
    copy.until(image.extension + 72)
    image.fill(165)
    copy.until(len(image.data))
    yield "copy_committed_too_far_ahead", copy.data, {"error": "damaged"}, "committed is more than a lap above intent"
    image = Image(64, checks=False)
    image.fill(100)
    copy = Copy(image)
    copy.until(image.extension + 72)
    image.fill(101)
    copy.until(len(image.data))
    yield "copy_committed_ahead_unchecked", copy.data, {"error": "damaged"}, "committed above intent, and no check words to go by"
    # The other way round: the control words were copied first, the records later.
    for more in (1, 40, 100):
        image = Image(64)
        image.fill(100)
        copy = Copy(image)
        control = bytes(image.data[image.extension : image.extension + 128])
        image.fill(100 + more)
        copy.until(len(image.data))
        copy.data[image.extension : image.extension + 128] = control
        image.control["heartbeat"] = image.created
        yield f"copy_control_first_{more}", copy.data, copy.answer(100, 100), f"{more} records are newer than the control words"
    image = Image(64)
    image.fill(100)
    image.announce(4)
    copy = Copy(image)
    copy.until_slot(36)
    for number in range(4):
        image.put(100 + number, record("agent_tx_bytes", 1, number, image.time))
    copy.until(image.extension + 72)
    data = bytes(image.data[copy.done :])
    image.commit()
    copy.until(len(image.data))
    copy.data[image.extension + 72 :] = data
    yield "copy_in_a_batch", copy.data, copy.answer(100, 104), "the batch was being written: four places belong to nobody"


def unchecked():
    image = Image(64, checks=False)
    image.fill(100)
    copy = Copy(image)
    copy.until_slot(32)
    image.fill(120)
    copy.until(len(image.data))
    # Slots 0 to 31 hold an older record than promised where it was overwritten since; a reader can't tell.
    events = []
    for position in range(120 - 64, 120):
        event = image.event_of(copy.slots[position % 64])
        events.append([position, *event[1:]])
    yield "copy_unchecked", copy.data, image.answer(56, events), "a copy of a live file without check words: nobody can tell"


def strangers():
    """Records that somebody else wrote over."""

    def ring():
        image = Image(16, [parts.LOSSES])
        image.fill(40)
        return image

    def spoiled(image, position, at, data, about, name):
        start = 40 + 56 * (position % 16) + at
        copy = Copy(image)
        copy.until(len(image.data))
        copy.data[start : start + len(data)] = data
        copy.slots[position % 16] = None
        return name, copy.data, copy.answer(40, 40), about

    fields = {"time": 0, "time_high": 7, "category": 8, "name": 12, "name_end": 43, "check": 44, "check_high": 47, "value": 48, "value_high": 55}
    for name, at in fields.items():
        image = ring()
        before = image.data[40 + 56 * (30 % 16) + at]
        yield spoiled(image, 30, at, bytes([before ^ 0x40]), f"one bit of a record's {name} is wrong", f"stranger_{name}")
    yield spoiled(ring(), 24, 0, bytes(56), "the oldest record was zeroed", "stranger_oldest_zero")
    yield spoiled(ring(), 39, 44, bytes(4), "a check word of 0 never fits", "stranger_check_zero")
    yield spoiled(ring(), 33, 0, b"\xff" * 56, "a record of ones", "stranger_ones")
    image = ring()
    copy = Copy(image)
    copy.until(len(image.data))
    first, second = 40 + 56 * 3, 40 + 56 * 5
    copy.data[first : first + 56], copy.data[second : second + 56] = copy.data[second : second + 56], copy.data[first : first + 56]
    copy.slots[3] = copy.slots[5] = None
    yield "stranger_swapped", copy.data, copy.answer(40, 40), "two records changed places: neither fits"
    copy = Copy(image)
    copy.until(40 + 16 * 56)
    copy.data[40 : 40 + 16 * 56] = bytes(16 * 56)
    copy.slots = [None] * 16
    copy.data[copy.done :] = image.data[copy.done :]
    yield "stranger_all_zero", copy.data, copy.answer(40, 40), "all records were zeroed"
    image = Image(16)
    copy = Copy(image)
    copy.until(len(image.data))
    other = Image(16)
    other.fill(8)
    copy.data[40 : 40 + 16 * 56] = other.data[40 : 40 + 16 * 56]
    yield "stranger_before_first", copy.data, copy.answer(0, 0), "records where nothing was promised are not looked at"


CASES = (taken_live, with_fillers, control_words, unchecked, strangers)
