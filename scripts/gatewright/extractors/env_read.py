"""What one source file says about the environment, in the same shape for every language.

The first pass (`Options.names` empty) yields direct reads. The name that a read hands over may be a
parameter of the enclosing function: that function is then a wrapper, and the judge asks for a
second pass whose `names` are the bare names of wrappers and of constants it has to resolve. That
pass yields calls, constants, exports and base classes of those names only, so each pass is a pure
function of one file and can be cached.
"""

import msgspec


class Options(msgspec.Struct, frozen=True):
    """`names`: bare names to report in a second pass; empty in the first pass."""

    names: tuple[str, ...] = ()


class Parameter(msgspec.Struct, frozen=True, array_like=True):
    """A parameter of a function of this file.

    `function` is qualified inside the file ("flag", "Env.get"); a class stands for its constructor.
    `index` counts positions as a caller writes them (no self); -1 means "the name that the result
    is assigned to" (`__set_name__`), -2 keyword only. `default` is the parameter's own default, as in `Value.text`,
    and `literal` its value when that is a literal.
    """

    function: str
    index: int
    keyword: str
    default: str | None = None
    literal: str | None = None


class Value(msgspec.Struct, frozen=True, array_like=True):
    """An expression, as far as one file can tell. One of the last four is set.

    `literal` is the value as text (a string's content, `4`, `True`). `reference` names a symbol to
    resolve in other files: a dotted path with imports applied ("pkg.names.CACHE", leading dots for a
    relative import, ":Names.CACHE" for this file); languages without imports give the bare name. The
    process environment itself is "os.environ". `pattern` is the glob of a text that is put together
    at run time ("ENGINE_*_PORT"); "*" when nothing is known. With `parameter` too, the parameter's text
    stands at the "*".
    """

    text: str
    literal: str | None = None
    reference: str = ""
    parameter: Parameter | None = None
    pattern: str = ""


class Read(msgspec.Struct, frozen=True, array_like=True):
    """One read of one variable. Line and column are 1-based, columns count code points.

    `form` says how it is written: subscript, get, getenv, in, pop, setdefault, var (Rust) ...
    `default` is the fallback in the code, None when there is none. `entry` is the key of the
    registry entry that the read stands in. `mapping` is set when the mapping is a parameter: it is
    a read only if some caller passes the environment there. `tested`: the code looks at the value and
    then decides what an unset variable means, so no default at the read does not mean none at all.
    """

    line: int
    column: int
    form: str
    name: Value
    statement: str
    default: Value | None = None
    entry: str = ""
    mapping: Parameter | None = None
    tested: bool = False


class Argument(msgspec.Struct, frozen=True, array_like=True):
    """One argument of a call; `keyword` is empty for a positional one."""

    keyword: str
    value: Value


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A call of something in `Options.names`, or a call that is given the environment itself.

    Inside a function in `Options.names`, also each call that its parameters are handed to.

    `callee` is a reference as in `Value.reference`; "?.flag" when the receiver of a method is not
    known. `target` is the variable or attribute that the result is assigned to. `starred` says that
    arguments are spread, so positions cannot be told. `form` is "call", or "escape" where the symbol
    is handed on without being called.
    """

    line: int
    column: int
    callee: str
    arguments: tuple[Argument, ...]
    statement: str
    entry: str = ""
    target: str = ""
    starred: bool = False
    form: str = "call"


class Constant(msgspec.Struct, frozen=True, array_like=True):
    """A name bound in a file or class body; `value` is None where it is not one text for good."""

    name: str
    value: str | None
    line: int


class Export(msgspec.Struct, frozen=True, array_like=True):
    """`name` of this file is another file's symbol: a re-export; "*" for a wildcard import."""

    name: str
    target: str


class Base(msgspec.Struct, frozen=True, array_like=True):
    """A class of this file and one of its bases, with whether it has a constructor of its own."""

    name: str
    base: str
    constructor: bool


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A key of a registry of lazy reads; `used`: the file itself uses the key elsewhere."""

    key: str
    line: int
    column: int
    used: bool = False


class EnvFacts(msgspec.Struct, frozen=True, array_like=True):
    """All of one file; extractors return a list of one, or an empty list when nothing was found.

    `defines` are the qualified functions and classes of this file whose bare name is in
    `Options.names`. `unparsed` says why the file could not be read by its language's reader; what is
    in `reads` then comes from the text alone.
    """

    reads: tuple[Read, ...] = ()
    calls: tuple[Call, ...] = ()
    constants: tuple[Constant, ...] = ()
    exports: tuple[Export, ...] = ()
    bases: tuple[Base, ...] = ()
    entries: tuple[Entry, ...] = ()
    defines: tuple[str, ...] = ()
    unparsed: str = ""
