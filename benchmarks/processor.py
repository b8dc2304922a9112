"""Processor time of this process and all below it but the bus: Java, the Python processes of Spark, the driver.

What machines do beside stretches the time on the clock by half and more. Processor time stays within a few percent, so
scenarios that compare what work costs use it.
"""

from __future__ import annotations

import psutil

from situ.cpu_time import cpu_seconds

BUS = "nats-server"


def processor_seconds() -> float:
    """Used so far. Differences count: processes that ended count as long as their parent lives."""
    return cpu_seconds(psutil.Process(), leave_out=BUS)
