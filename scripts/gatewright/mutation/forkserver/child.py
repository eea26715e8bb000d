"""The pytest plugin of a child: runs the chosen tests and reports every step."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from .events import Events
from .measure import Measure


class Child:
    """Follows the run in the child. With a mutant it ends at the first test that fails."""

    def __init__(self, request: dict[str, Any], events: Events) -> None:
        self.request, self.events = request, events
        self.measure = Measure(Path.cwd(), request["package"]) if request.get("measure") else None
        self.limits = dict(request.get("tests") or [])
        self.begin(request["load_seconds"])

    def begin(self, limit: float) -> None:
        """Start a step that may take `limit` seconds of the processor: then the system ends this process."""
        self.started = _processor_seconds()
        if self.measure is None:
            signal.setitimer(signal.ITIMER_PROF, limit)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.events.send("collect-error", test=report.nodeid, text=str(report.longrepr).strip()[-600:])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        wanted = self.request.get("tests")
        if wanted is None:
            left_out = [i for i in items if any(i.get_closest_marker(m) for m in self.request["markers_left_out"])]
            items[:] = [item for item in items if item not in left_out]
            self.events.send("left-out", tests=[item.nodeid for item in left_out])
            missing = []
        else:
            order = {test: number for number, (test, _) in enumerate(wanted)}
            items[:] = sorted((i for i in items if i.nodeid in order), key=lambda item: order[item.nodeid])
            missing = sorted(order.keys() - {item.nodeid for item in items})
        seconds = _processor_seconds() - self.started
        self.events.send("collected", tests=len(items), missing=missing, seconds=seconds)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.events.send("start", test=nodeid)
        self.begin(self.limits.get(nodeid, 0.0))
        if self.measure is not None:
            self.measure.enter(nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if report.failed:
            text = f"{call.excinfo.typename}: {call.excinfo.value}" if call.excinfo else ""
            self.events.send("fail", test=item.nodeid, phase=report.when, text=text[:600])
            if report.when == "call" and self.measure is None:
                self.finish()
        elif report.skipped:
            self.events.send("skip", test=item.nodeid)
        elif report.when == "call":
            self.events.send("pass", test=item.nodeid)
        return report

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.events.send("finish", test=nodeid, seconds=_processor_seconds() - self.started)
        self.begin(self.request["load_seconds"])
        if self.measure is not None:
            self.measure.leave()

    def pytest_sessionfinish(self) -> None:
        if self.measure is not None:
            self.events.send("measured", **self.measure.result())
        self.finish()

    def finish(self) -> None:
        self.events.send("end")
        os._exit(0)


def _processor_seconds() -> float:
    """Of this process and of the children that it waited for: what a busy machine does not change."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
