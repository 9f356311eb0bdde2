#!/usr/bin/env python3
"""Opens a VTU, PVTU or VTI file with VTK's reader, the one of ParaView, and compares it with expected numbers.

usage: check_vtu.py FILE EXPECTED.json

EXPECTED.json holds `n_points`, `n_cells` and, by name under `point_arrays` and `cell_arrays`, any of
`n_components`, `min`, `max`, `sum` and `values` (all numbers, in order); null is not compared. Each entry of
`inside` has a `cell`, `reference` coordinates in it, and the `point` and value of the array `u` that VTK finds there.
"""

import json
import sys

from vtkmodules.vtkCommonCore import reference
from vtkmodules.vtkIOXML import (
    vtkXMLImageDataReader,
    vtkXMLPUnstructuredGridReader,
    vtkXMLUnstructuredGridReader,
)

READERS = {"vti": vtkXMLImageDataReader, "pvtu": vtkXMLPUnstructuredGridReader}


def differences(kind, arrays, expected):
    for name, promise in expected.items():
        array = arrays.GetArray(name)
        if array is None:
            yield f"{kind} array `{name}` is missing"
            continue
        values = [x for i in range(array.GetNumberOfTuples()) for x in array.GetTuple(i)]
        found = {"n_components": array.GetNumberOfComponents(), "values": values}
        if values:
            found |= {"min": min(values), "max": max(values), "sum": sum(values)}
        for key, value in promise.items():
            if value is None:
                continue
            exact = key in ("n_components", "values", "min", "max")
            scale = sum(abs(x) for x in values)
            if found.get(key) != value and (exact or abs(found[key] - value) > 1e-13 * scale):
                yield f"{kind} array `{name}`: {key} is {str(found.get(key))[:200]}, not {str(value)[:200]}"


def inside(grid, promises):
    for promise in promises:
        cell, u = grid.GetCell(promise["cell"]), grid.GetPointData().GetArray("u")
        n = cell.GetNumberOfPoints()
        point, weights = [0.0] * 3, [0.0] * n
        cell.EvaluateLocation(reference(0), promise["reference"], point, weights)
        value = sum(weights[k] * u.GetValue(cell.GetPointId(k)) for k in range(n))
        for found, expected in zip([*point, value], [*promise["point"], promise["u"]]):
            if abs(found - expected) > 1e-9:
                yield f"cell {promise['cell']} has {found}, not {expected} at {promise['reference']}"


def main():
    path, promise = sys.argv[1], json.load(open(sys.argv[2]))
    problems = []
    reader = READERS.get(path.rsplit(".")[-1], vtkXMLUnstructuredGridReader)()
    observer = lambda *_: problems.append("VTK reports an error")
    reader.AddObserver("ErrorEvent", observer)
    reader.SetFileName(path)
    reader.Update()
    grid = reader.GetOutput()
    for key, found in (("n_points", grid.GetNumberOfPoints()), ("n_cells", grid.GetNumberOfCells())):
        if promise[key] != found:
            problems.append(f"{key} is {found}, not {promise[key]}")
    problems += differences("point", grid.GetPointData(), promise.get("point_arrays", {}))
    problems += differences("cell", grid.GetCellData(), promise.get("cell_arrays", {}))
    if "points" in promise:
        points = [x for i in range(grid.GetNumberOfPoints()) for x in grid.GetPoint(i)]
        if points != promise["points"]:
            problems.append("points differ")
    if "cells" in promise:
        cells = []
        for i in range(grid.GetNumberOfCells()):
            cell = grid.GetCell(i)
            cells.append([cell.GetPointId(k) for k in range(cell.GetNumberOfPoints())])
        if cells != promise["cells"]:
            problems.append("cells differ")
    problems += inside(grid, promise.get("inside", []))
    for problem in problems:
        print(f"{path}: {problem}")
    sys.exit(1 if problems else 0)


main()
