"""Lineage: what each stage of a run read and wrote, told as OpenLineage events where a profile asks for it."""
