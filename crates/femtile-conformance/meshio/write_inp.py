#!/usr/bin/env python3
"""Writes a mesh of Gmsh as an input file of Abaqus with meshio, a set for each tag of the cells.

usage: write_inp.py FROM.msh TO.inp
"""

import sys

import meshio
import numpy as np


def main():
    mesh = meshio.read(sys.argv[1])
    dimension = max(block.dim for block in mesh.cells)
    tags = mesh.cell_data["gmsh:physical"]
    blocks = [(block, tag) for block, tag in zip(mesh.cells, tags) if block.dim == dimension]
    sets = {
        f"tag{value}": [np.flatnonzero(tag == value) for _, tag in blocks]
        for value in np.unique(np.concatenate([tag for _, tag in blocks]))
    }
    left = np.flatnonzero(mesh.points[:, 0] == mesh.points[:, 0].min())
    written = meshio.Mesh(
        mesh.points,
        [(block.type, block.data) for block, _ in blocks],
        cell_sets=sets,
        point_sets={"left": left},
    )
    written.write(sys.argv[2], file_format="abaqus")


main()
