"""What a child tells the server."""

import json
import os
from typing import Any


class Events:
    """A stream of JSON objects, one a line, each with its `kind`."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def send(self, kind: str, **values: Any) -> None:
        data = json.dumps({"kind": kind, **values}).encode() + b"\n"
        while data:
            data = data[os.write(self.descriptor, data) :]
