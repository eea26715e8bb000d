"""Which variables a tree reads: the facts of single files put together to a fixpoint.

Wrappers and constants are known only after a pass, and name what the next pass must look for. Each
pass asks for new names only, so it ends when a pass brings none.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import msgspec

from gatewright.checks._env_modules import Modules, bare_name
from gatewright.core.facts import Extractor
from gatewright.core.tree import Tree
from gatewright.extractors.env_read import Call, Entry, EnvFacts, Options, Parameter, Read, Value

ENVIRON = frozenset({"os.environ", "os.environb"})
# Of one function; one that calls itself with a longer name each time has no end of forms.
MAX_FORMS = 256

Source = Callable[[Options], Sequence[Extractor]]


class Use(msgspec.Struct, frozen=True):
    """A variable that is read at a place. `default` is the code's fallback there; `tested` as in `Read`."""

    path: str
    line: int
    column: int
    name: str
    form: str
    statement: str
    default: Value | None = None
    entry: str = ""
    tested: bool = False


class Unresolved(msgspec.Struct, frozen=True):
    """A read whose name cannot be told; `pattern` is what is known of it, `reason` why not more."""

    path: str
    line: int
    column: int
    text: str
    pattern: str
    reason: str
    statement: str


class Wrapper(msgspec.Struct, frozen=True):
    """A function or class that reads the variable which one of its parameters names.

    The parameter's text stands at the "*" of `pattern`, or is all of the name when that is empty.
    """

    path: str
    function: str
    parameter: Parameter
    pattern: str
    default: Value | None
    tested: bool
    # Where the parameter is read or handed on.
    line: int
    column: int
    statement: str


class Resolution(msgspec.Struct):
    """All of one tree."""

    uses: list[Use] = []
    unresolved: list[Unresolved] = []
    entries: list[tuple[str, Entry]] = []
    unparsed: dict[str, str] = {}


def resolve(tree: Tree, source: Source) -> Resolution:
    """Read the environment facts of a tree until no pass names anything new."""
    files = _Files([path for extractor in source(Options()) for path in tree.select(extractor.paths)])
    names: set[str] = set()
    wanted: set[str] = set()
    while True:
        extractors = source(Options(tuple(sorted(wanted))))
        tree.prefetch(extractors)
        for extractor in extractors:
            for path, facts in tree.facts(extractor).items():
                files.add(path, facts)
        names |= wanted
        solver = _Solver(files, names)
        solver.run()
        wanted = solver.wanted - names
        if not wanted:
            return solver.resolution()


class _Files:
    """The facts of every pass by file, each fact once."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.modules = Modules(paths)
        self.reads: dict[str, dict[Read, None]] = {}
        self.calls: dict[str, dict[Call, None]] = {}
        self.entries: dict[tuple[str, str], Entry] = {}
        self.unparsed: dict[str, str] = {}

    def add(self, path: str, facts: Iterable[EnvFacts]) -> None:
        for fact in facts:
            self.reads.setdefault(path, {}).update(dict.fromkeys(fact.reads))
            self.calls.setdefault(path, {}).update(dict.fromkeys(fact.calls))
            self.modules.add(path, fact)
            for entry in fact.entries:
                self.entries[path, entry.key] = entry
            if fact.unparsed:
                self.unparsed[path] = fact.unparsed


class _Solver:
    """One attempt with the facts so far; `asked` are the bare names of all passes, `wanted` those that
    would tell more."""

    def __init__(self, files: _Files, asked: Container[str]) -> None:
        self.files = files
        self.asked = asked
        self.modules = files.modules
        self.wanted: set[str] = set()
        self.uses: dict[Use, None] = {}
        self.unresolved: dict[Unresolved, None] = {}
        self.wrappers: dict[tuple[str, str], dict[Wrapper, None]] = {}
        self.called: set[Wrapper] = set()
        # Parameters that receive the environment: path, function, position or keyword.
        self.environments: set[tuple[str, str, int | str]] = set()

    def run(self) -> None:
        """Grow wrappers and environment parameters until neither changes."""
        size = -1
        while size != (size := sum(map(len, self.wrappers.values())) + len(self.environments)):
            for path, reads in self.files.reads.items():
                for read in reads:
                    if read.mapping is None or self._is_environment(path, read.mapping):
                        self._name(path, read, read.name, read.default, tested=read.tested)
            for path, calls in self.files.calls.items():
                for call in calls:
                    self._environment_arguments(path, call)
                    for wrapper in self._callees(path, call):
                        self._wrapped(path, call, wrapper)
        for found in self.wrappers.values():
            self.wanted |= {part for wrapper in found for part in wrapper.function.split(".")[-2:]}
            self.wanted |= {name for w in found for name in self.modules.derived(w.path, w.function)}
        self.wanted |= {bare_name(function) for _, function, _ in self.environments}
        self.wanted = {name for name in self.wanted | self.modules.wanted if name.isidentifier()}

    def resolution(self) -> Resolution:
        for wrapper in (w for found in self.wrappers.values() for w in found if w not in self.called):
            text, reason = wrapper.parameter.keyword or wrapper.function, f"no call of {wrapper.function} is in sight"
            self._fail(wrapper.path, wrapper, text, wrapper.pattern or "*", reason)
        return Resolution(
            uses=sorted(self.uses, key=lambda use: (use.path, use.line, use.column, use.name)),
            unresolved=sorted(self.unresolved, key=lambda site: (site.path, site.line, site.column, site.pattern)),
            entries=[
                (path, entry) for (path, _), entry in sorted(self.files.entries.items(), key=lambda item: item[0])
            ],
            unparsed=dict(sorted(self.files.unparsed.items())),
        )

    def _is_environment(self, path: str, parameter: Parameter) -> bool:
        places = (parameter.index, parameter.keyword) if parameter.index >= 0 else (parameter.keyword,)
        return any((path, parameter.function, place) in self.environments for place in places)

    def _environment_arguments(self, path: str, call: Call) -> None:
        position = 0
        for argument in call.arguments:
            place: int | str = argument.keyword or position
            position += not argument.keyword
            handed = argument.value.reference in ENVIRON or (
                argument.value.parameter is not None and self._is_environment(path, argument.value.parameter)
            )
            if handed:
                for target, function in self.modules.find(path, call.callee):
                    self.environments.add((target, function, place))

    def _callees(self, path: str, call: Call) -> Iterator[Wrapper]:
        """The wrappers that a call may reach."""
        if call.callee.startswith("?."):
            yield from self._unknown_receiver(call)
            return
        if bare_name(call.callee) not in self.asked:
            return
        for target, function in self.modules.lookup(path, call.callee, self.wrappers.keys()):
            yield from list(self.wrappers[target, function])

    def _unknown_receiver(self, call: Call) -> Iterator[Wrapper]:
        """Methods of that name, where the argument is a text: what else it could be is a variable."""
        suffix = call.callee[1:]
        for (_, function), found in list(self.wrappers.items()):
            if function.endswith(suffix):
                yield from [w for w in found if (value := _argument(call, w.parameter)) and value.literal is not None]

    def _wrapped(self, path: str, call: Call, wrapper: Wrapper) -> None:
        self.called.add(wrapper)
        if call.form == "escape":
            self._fail(
                path, call, call.callee.lstrip(":"), wrapper.pattern or "*", "the function is handed on uncalled"
            )
            return
        value = _argument(call, wrapper.parameter)
        if value is None:
            return
        if wrapper.pattern:
            value = _filled(wrapper.pattern, value)
        default = wrapper.default
        if default is not None and default.parameter is not None and default.parameter.function == wrapper.function:
            default = _argument(call, default.parameter)
        self._name(path, call, value, default, tested=wrapper.tested)

    def _name(self, path: str, site: Read | Call, value: Value, default: Value | None, *, tested: bool) -> None:
        """Note a read of the variable that `value` names: a use, a wrapper, or a failure."""
        form = site.form if isinstance(site, Read) else "wrapper"
        if default is not None and default.literal is None and default.text == "None":
            default = None
        if value.literal is not None:
            where = (path, site.line, site.column)
            self.uses[Use(*where, value.literal, form, site.statement, default, site.entry, tested)] = None
        elif value.parameter is not None:
            self._wrap(path, site, value, default, tested=tested)
        elif value.reference:
            self._constant(path, site, value, default, tested=tested)
        else:
            self._fail(path, site, value.text, value.pattern or "*", "its name is put together at run time")

    def _wrap(self, path: str, site: Read | Call, value: Value, default: Value | None, *, tested: bool) -> None:
        """Note the function whose parameter `value` is as a wrapper."""
        parameter = value.parameter
        assert parameter is not None
        place = (site.line, site.column, site.statement)
        wrapper = Wrapper(path, parameter.function, parameter, value.pattern, default, tested, *place)
        found = self.wrappers.setdefault((path, parameter.function), {})
        if len(found) < MAX_FORMS:
            found[wrapper] = None
        elif wrapper not in found:
            self._fail(path, site, value.text, "*", f"{parameter.function} calls itself with ever longer names")

    def _constant(self, path: str, site: Read | Call, value: Value, default: Value | None, *, tested: bool) -> None:
        texts = self.modules.constants(path, value.reference)
        if texts and all(text is not None for text in texts):
            for text in texts:
                self._name(path, site, Value(value.text, literal=text), default, tested=tested)
            return
        if texts:
            reason = f"{value.text} is not one text for good"
        else:
            reason = f"{value.text} is no constant of the judged files"
        self._fail(path, site, value.text, "*", reason)

    def _fail(self, path: str, site: Read | Call | Wrapper, text: str, pattern: str, reason: str) -> None:
        failure = Unresolved(path, site.line, site.column, text, pattern, reason, site.statement)
        self.unresolved[failure] = None


def _filled(pattern: str, value: Value) -> Value:
    """`value` put at the "*" of a wrapper's pattern."""
    if value.literal is not None:
        return Value(value.text, literal=pattern.replace("*", value.literal, 1))
    return Value(value.text, parameter=value.parameter, pattern=pattern.replace("*", value.pattern or "*", 1))


def _argument(call: Call, parameter: Parameter) -> Value | None:
    """What a call hands to a parameter; None when it gives nothing and there is no default but None."""
    if parameter.index == -1:
        return Value(call.target, literal=call.target) if call.target else Value(call.statement, pattern="*")
    for argument in call.arguments:
        if argument.keyword and argument.keyword == parameter.keyword:
            return argument.value
    positional = [argument.value for argument in call.arguments if not argument.keyword]
    if 0 <= parameter.index < len(positional) and not call.starred:
        return positional[parameter.index]
    if call.starred:
        return Value("*" + parameter.keyword, pattern="*")
    if parameter.default in (None, "None"):
        return None
    return Value(parameter.default, literal=parameter.literal)
