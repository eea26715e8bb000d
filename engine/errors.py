"""Every error that the engine raises on purpose. Their texts say what, where and what to do."""


class EngineError(Exception):
    """Base of all of them; anything else that escapes the engine is a defect."""


class ConfigError(EngineError):
    """A setting that cannot be honoured. Raised before any request is accepted."""


class CheckpointError(EngineError):
    """Weights, configuration or tokenizer on disk that cannot be read as the model needs them."""


class RequestError(EngineError):
    """One request that cannot be served as asked. Never harms another request."""
