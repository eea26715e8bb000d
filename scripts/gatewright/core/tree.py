"""What a judge sees: the paths of one snapshot and the facts of their blobs."""
# (being written by the lead: facts(extractor) -> dict[path, list[fact]] of non-empty lists, in path order;
#  examined(extractor) -> number of files the extractor read; paths -> sorted list of regular files;
#  Tree.of({path: text or bytes}) for tests)
