"""Processor time over a tree of processes that changes while it is looked at."""

import subprocess
import sys

import psutil

from app.bench.ingesting import _ours, _spent


def test_a_process_that_has_ended_since_it_was_listed_spends_nothing_and_is_nobodys() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        listed = psutil.Process(child.pid)
        assert _ours(listed) is True
        assert _spent(listed) >= 0.0
        child.communicate(b"\n")
    assert (_spent(listed), _ours(listed)) == (0.0, False)
