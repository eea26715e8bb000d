"""Mutants of policy files."""

import tomllib

from gatewright.mutation.tables import plan_policy

POLICY = """# What is enforced.
limit = 80
strict = true

[words]
# Devices.
cuda = ['\\btorch\\.cuda\\b', "nvidia"]
where = "src/**"
"""


def test_entries_limits_flags_patterns_and_texts_are_mutated() -> None:
    mutants = plan_policy("policy/words.toml", POLICY.encode())
    made = {(m.function, m.operator, m.becomes): tomllib.loads(m.apply(POLICY.encode()).decode()) for m in mutants}
    original = tomllib.loads(POLICY)
    assert all(policy != original for policy in made.values())
    assert made["limit", "limit", "81"]["limit"] == 81
    assert made["limit", "limit", "79"]["limit"] == 79
    assert made["strict", "flag", "False"]["strict"] is False
    assert "words" not in made["words", "entry", ""]
    assert made["words.where", "string", "XXsrc/**"]["words"]["where"] == "XXsrc/**"
    assert made["words.cuda", "regex", r"torch\.cuda\b"]["words"]["cuda"] == [r"torch\.cuda\b", "nvidia"]
    dropped = [m for m in mutants if (m.function, m.operator) == ("words.cuda", "entry")]
    assert sorted(m.source for m in dropped) == sorted([r"\btorch\.cuda\b", "nvidia", str(original["words"]["cuda"])])


def test_comments_and_layout_stay() -> None:
    for mutant in plan_policy("policy/words.toml", POLICY.encode()):
        text = mutant.apply(POLICY.encode()).decode()
        assert text.startswith("# What is enforced.\n")
        changed = [line for line in mutant.diff(POLICY.encode()).splitlines()[2:] if line[0] in "+-"]
        assert 1 <= len(changed) <= 4 or mutant.function == "words"
