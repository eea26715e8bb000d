"""What holds for every test."""

import os

from hypothesis import HealthCheck, settings

# A property is not a timing: a busy machine must not turn one red. In CI the examples are the same in every run.
settings.register_profile(
    "suite",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("suite")
