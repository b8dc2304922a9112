"""Processor time of this process and all below it but the bus: Java, the Python processes of Spark, the driver.

What machines do beside stretches the time on the clock by half and more. Processor time stays within a few percent, so
scenarios that compare what work costs use it.
"""

from __future__ import annotations

from contextlib import suppress

import psutil

BUS = "nats-server"


def processor_seconds() -> float:
    """Used so far. Differences count: processes that ended count as long as their parent lives."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.Error):
            if process.name() != BUS:
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total
