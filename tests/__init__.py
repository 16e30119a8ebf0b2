"""The tests. A package, so that its rooms may share the reference, the engines and the cases."""
