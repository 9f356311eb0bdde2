#!/usr/bin/env python3
"""Opens a VTU, PVTU, VTI or VTKHDF file with VTK's reader, the one of ParaView, and compares it with expected numbers.

usage: check_vtu.py FILE EXPECTED.json

EXPECTED.json holds `n_points`, `n_cells` and, by name under `point_arrays` and `cell_arrays`, any of
`n_components`, `min`, `max`, `sum` and `values` (all numbers, in order); null is not compared. Each entry of
`inside` has a `cell`, `reference` coordinates in it, and the `point` and value of the array `u` that VTK finds there.
Of a VTKHDF file it holds `frames`: each has a `time`, null of a file without times, and a VTU `file` with the same content.
"""

import json
import sys

from vtkmodules.vtkCommonCore import reference
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
from vtkmodules.vtkIOHDF import vtkHDFReader
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


def content(grid):
    """Returns all that a grid has, by name."""
    cells = [grid.GetCell(i) for i in range(grid.GetNumberOfCells())]
    found = {
        "points": [grid.GetPoint(i) for i in range(grid.GetNumberOfPoints())],
        "kinds of cells": [cell.GetCellType() for cell in cells],
        "cells": [[cell.GetPointId(k) for k in range(cell.GetNumberOfPoints())] for cell in cells],
    }
    for kind, arrays in (("point", grid.GetPointData()), ("cell", grid.GetCellData())):
        for k in range(arrays.GetNumberOfArrays()):
            array = arrays.GetArray(k)
            values = [array.GetTuple(i) for i in range(array.GetNumberOfTuples())]
            found[f"{kind} array `{array.GetName()}`"] = values
    return found


def frames(path, promises):
    reader, problems = vtkHDFReader(), []
    reader.AddObserver("ErrorEvent", lambda *_: problems.append("VTK reports an error"))
    reader.SetFileName(path)
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS()) or [None]
    if len(times) != len(promises):
        problems.append(f"times are {list(times)}")
    for time, promise in zip(times, promises):
        if time is None:
            reader.Update()
        else:
            reader.UpdateTimeStep(time)
        if time != promise["time"] and (time is None or abs(time - promise["time"]) > 1e-12):
            problems.append(f"time is {time}, not {promise['time']}")
        other = vtkXMLUnstructuredGridReader()
        other.SetFileName(promise["file"])
        other.Update()
        found, expected = content(reader.GetOutputDataObject(0)), content(other.GetOutput())
        if not expected["cells"]:
            problems.append(f"{promise['file']} is empty")
        names = sorted(found.keys() | expected.keys())
        differing = [name for name in names if found.get(name) != expected.get(name)]
        problems += [f"{name} differ at time {time}" for name in differing]
    return problems


def end(path, problems):
    for problem in problems:
        print(f"{path}: {problem}")
    sys.exit(1 if problems else 0)


def main():
    path, promise = sys.argv[1], json.load(open(sys.argv[2]))
    if "frames" in promise:
        end(path, frames(path, promise["frames"]))
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
    end(path, problems)


main()
