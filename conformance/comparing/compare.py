"""What one answer says differently from another."""

import json

from comparing.readers import is_answer

IGNORED = ("about", "group", "path", "file")
MOST = 3


def parse(line):
    """A line as an answer. What is none becomes an answer that equals no other."""
    if not is_answer(line):
        return {"error": f"NO ANSWER: {line}"}
    try:
        answer = json.loads(line)
    except ValueError as error:
        return {"error": f"NO ANSWER: no JSON ({error}): {line[:200]}"}
    return answer if answer.get("error") is None else {"error": answer["error"]}


def has_answered(answer):
    return not str(answer.get("error", "")).startswith("NO ANSWER")


def differences(wanted, got):
    """Lines that say what differs, the first few. Only what `wanted` holds is looked at."""
    if "error" in wanted or "error" in got:
        if wanted.get("error") == got.get("error"):
            return []
        return [f"wanted {_outcome(wanted)}", f"got    {_outcome(got)}"]
    found = list(_walk("", wanted, got))
    rest = len(found) - MOST
    return found[:MOST] + ([f"and {rest} more differences"] if rest > 0 else [])


def _outcome(answer):
    if "error" in answer:
        return f"error {answer['error']}"
    return f"{answer.get('layout')} with {len(answer.get('events', ()))} events"


def _walk(where, wanted, got):
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            if not (where == "" and key in IGNORED):
                name = f"{where}.{key}" if where else key
                if key in got:
                    yield from _walk(name, value, got[key])
                else:
                    yield f"{name}: wanted {_short(value)}, got nothing"
    elif isinstance(wanted, list) and isinstance(got, list):
        if len(wanted) != len(got):
            yield f"{where}: wanted {len(wanted)} of them, got {len(got)}"
        for number, (one, other) in enumerate(zip(wanted, got)):
            yield from _walk(f"{where}[{number}]", one, other)
    elif type(wanted) is not type(got) or wanted != got:
        yield f"{where}: wanted {_short(wanted)}, got {_short(got)}"


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 120 else text[:117] + "..."
