"""Exact accounts: read + lost = written, and nothing read that was not recorded.

Transfer number n has values that n fixes (guest.values), so a torn event or one of another place can't pass for one
that was recorded there.
"""

import guest
from processes import Failed

# Events of one transfer stand together, the bytes third.
GROUP, BYTES_AT = 4, 2


def check(made, reading, transfers):
    """The report of a producer that has stopped against what a reader saw of its file from the start to the end."""
    if made["recorded"] != made["exported"] + made["lost"]:
        raise Failed(f"the producer's own account is off: {made}")
    if reading.other:
        raise Failed(f"the reader met something besides events and losses: {reading.other[:3]}")
    if not reading.events:
        raise Failed("the reader saw no event at all")
    written = reading.events[-1]["seq"] + 1
    if len(reading.events) + reading.lost != written:
        raise Failed(f"{len(reading.events)} read + {reading.lost} lost is not {written} written")
    # The agent's own notices stand outside its account; the ones overwritten unread are among the lost.
    notices = sum(1 for event in reading.events if is_notice(event))
    if not notices <= written - made["exported"] <= notices + reading.lost:
        raise Failed(f"{written} events in the file, {made['exported']} exported, {notices} notices among those read")
    numbers = [number for run in runs(reading.events) for number in transfers_of(run, transfers)]
    if any(later <= earlier for earlier, later in zip(numbers, numbers[1:])):
        raise Failed("a transfer was read twice, or out of order")
    return len(numbers)


def is_notice(event):
    return event["category"] == "SYSTEM" or event["event"] == "agent_telemetry_events_dropped"


def runs(events):
    """Stretches without a loss inside, notices left out."""
    run, expected = [], None
    for event in events:
        if expected is not None and event["seq"] != expected and run:
            yield run
            run = []
        expected = event["seq"] + 1
        if not is_notice(event):
            run.append((event["event"], event["value"]))
    if run:
        yield run


def transfers_of(run, transfers):
    """The numbers of the whole transfers in a run; only its two ends may hold a part of one."""
    at = 0
    while at < len(run) and run[at][0] != "agent_xfer_post_time":
        at += 1
    if at >= GROUP:
        raise Failed(f"{at} events without the beginning of a transfer: {run[:at][:5]}")
    found = []
    while at + GROUP <= len(run):
        group = run[at : at + GROUP]
        number = (group[BYTES_AT][1] - 1) // 3
        if not 0 <= number < transfers or group != guest.events(number):
            raise Failed(f"nobody recorded these four events: {group}")
        found.append(number)
        at += GROUP
    return found
