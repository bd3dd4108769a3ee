"""Files that take more than one pass to read. They are made when they are needed, and not committed."""

from making.cases_copies import Copy
from making.image import Image
from making.nixl import Ring


def images():
    image = Image(16384)
    image.transfers(1000)
    yield "large_first_lap", image.data, image.whole(), "4000 records of 16384"
    image.transfers(4500, first=1001)
    yield "large_wrapped", image.data, image.whole(), "a large ring that went around"
    copy = Copy(image)
    for slot in range(2000, 16384, 2000):
        copy.until_slot(slot, 20)
        image.transfers(500, first=7000 + slot)
    copy.until(len(image.data))
    yield "large_copy", copy.data, copy.answer(image.committed, image.intent), "a large ring copied while its producer was at work"


def rings():
    ring = Ring("L4", 16384)
    for number in range(17000):
        ring.push(0, 0, number % 20, number)
    ring.consume(9000)
    for number in range(5000):
        ring.push(0, 0, number % 20, number)
    yield "large_l4", ring.data, ring.answer(), "a large ring of NIXL's, around its end"


CASES = (images, rings)
