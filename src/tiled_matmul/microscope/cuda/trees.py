"""Build small syntax trees."""

from __future__ import annotations

import ast


def read_name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def write_name(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign([target], value)


def call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(read_name(name), list(arguments), [])


def lane_attribute(name: str, context: ast.expr_context | None = None) -> ast.Attribute:
    return ast.Attribute(read_name("_simt_lane"), name, context or ast.Store())


def lane_method(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(lane_attribute(name, ast.Load()), list(arguments), [])
