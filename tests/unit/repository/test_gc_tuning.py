"""Memory that was freed goes back to the system."""

from __future__ import annotations

import platform

import numpy as np
import psutil
import pytest

from situ.gc_tuning import trim_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries see to it themselves")
def test_what_lies_free_between_what_is_in_use_is_given_back() -> None:
    me = psutil.Process()
    trim_memory()
    before = me.memory_info().rss
    many = [np.ones(8_000) for _ in range(2_000)]
    kept = many[::16]
    many.clear()
    trim_memory()
    taken = me.memory_info().rss - before
    assert taken < 3 * sum(each.nbytes for each in kept)
