"""The proof of the checks: change their code and tables, one edit at a time, and see which tests notice."""
