"""Processor time of a piece of work, for tests that hold its growth to the size of its input."""

import gc
import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[int], object]) -> Callable[[int], float]:
    """A function from the size to the lesser of two measurements.

    The collector is off meanwhile: it would walk all that other tests have left in memory.
    """

    def measured(size: int) -> float:
        times = []
        gc.disable()
        try:
            for _ in range(2):
                start = time.process_time()
                work(size)
                times.append(time.process_time() - start)
        finally:
            gc.enable()
        return min(times)

    return measured
