"""The entry of kind `xml_join`."""

from __future__ import annotations

from trendlake.cep_core.kind import Kind, Pairs, runtime
from trendlake.cep_core.xml_join import diagram as xml_join_diagram
from trendlake.cep_core.xml_join import explain as xml_join_explain
from trendlake.cep_core.xml_join.compile import plan as xml_join_plan
from trendlake.cep_core.xml_join.compile.check import compile_xml_join
from trendlake.cep_core.xml_join.compile.model import QueryModel, XmlJoinPattern

KIND = Kind(
    model=XmlJoinPattern,
    compile=compile_xml_join,
    run=runtime("xml_join", "run"),
    explain=xml_join_explain.explain_xml_join,
    draw=xml_join_diagram.draw,
    version=xml_join_plan.ENGINE_VERSION,
    roles=("event_time", "document"),
    groups=("query",),
    pairs=Pairs(
        ids=("left_id", "right_id"),
        column=lambda plan: str(plan.schema.document),
        partners=runtime("xml_join", "partners"),
        within=lambda plan: int(plan.within),
        limit=lambda plan: int(plan.limit),
    ),
    nested={"queries": QueryModel},
)
