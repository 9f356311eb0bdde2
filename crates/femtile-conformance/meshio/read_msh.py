#!/usr/bin/env python3
"""Reads a mesh with meshio and prints as JSON what it found.

usage: read_msh.py FILE
"""

import json
import sys

import meshio


def main():
    mesh = meshio.read(sys.argv[1])
    blocks = lambda data: {name: [block.tolist() for block in blocks] for name, blocks in data.items()}
    found = {
        "points": mesh.points.tolist(),
        "cells": [{"kind": block.type, "nodes": block.data.tolist()} for block in mesh.cells],
        "cell_data": blocks(mesh.cell_data),
        "point_data": {name: values.tolist() for name, values in mesh.point_data.items()},
        "names": {name: values.tolist() for name, values in mesh.field_data.items()},
    }
    print(json.dumps(found))


main()
