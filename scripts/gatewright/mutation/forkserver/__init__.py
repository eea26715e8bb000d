"""A process of its own that forks a child for each run; started as the top-level package `forkserver`.

Nothing in here imports the package under test, so a child that meets a mutant in the import hook
builds its tables, decorators and registries from it.
"""
