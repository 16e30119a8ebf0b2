"""Automata as pictures: a graph of any kind of pattern (`graph`), laid out (`layout`), as SVG (`svg`)."""

from cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from cep_core.drawing.svg import STYLE, svg

__all__ = ["STYLE", "Drawing", "Edge", "Graph", "Line", "Node", "svg"]
