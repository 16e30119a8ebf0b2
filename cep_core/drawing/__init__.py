"""Draws automata: the graph of a plan (`graph`), its layout (`layout`) and its SVG document (`svg`)."""

from trendlake.cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from trendlake.cep_core.drawing.svg import INHERITED_STYLE, STYLE, svg

__all__ = ["INHERITED_STYLE", "STYLE", "Drawing", "Edge", "Graph", "Line", "Node", "svg"]
