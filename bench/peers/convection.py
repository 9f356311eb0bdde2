"""Stabilised convection-diffusion, the problem of `examples/39-convection`, on the tetrahedra of a cube, for the peers beside this file."""

import itertools

import numpy
import scipy.sparse


def system(n, d):
    """Assemble matrix and right side for n nodes along an edge and the diffusivity d.

    Streamline upwind Petrov-Galerkin with one point a cell, on the six tetrahedra of each of (n - 1)^3 cubes. Rows and columns
    of Dirichlet values are left out, as approximate ideal restriction needs it.
    """
    h = 1 / (n - 1)
    corner = numpy.arange(n - 1)
    first = (corner[:, None, None] * n + corner[None, :, None]) * n + corner[None, None, :]
    first = first.ravel().astype("i4")
    strides = [n * n, n, 1]
    x = numpy.stack(numpy.meshgrid(*[numpy.arange(n) * h] * 3, indexing="ij"), -1).reshape(-1, 3)
    matrix, b_all = scipy.sparse.csr_matrix((n**3, n**3)), numpy.zeros(n**3)
    for path in itertools.permutations(range(3)):
        cells = [first]
        for axis in path:
            cells.append(cells[-1] + strides[axis])
        cells = numpy.stack(cells, 1)
        # Barycentric gradients of a tetrahedron along such a path: differences along its edges.
        gradients = numpy.zeros((4, 3))
        for k, axis in enumerate(path):
            gradients[k, axis] -= 1 / h
            gradients[k + 1, axis] += 1 / h
        centre = x[cells].mean(1)
        wind = numpy.stack([numpy.ones(len(cells)), 0.5 * numpy.cos(numpy.pi * centre[:, 0]), 0.25 + 0 * centre[:, 0]], 1)
        metric = 0.5 * gradients.T @ gradients
        along = wind @ gradients.T
        tau = 1 / numpy.sqrt(4 * numpy.einsum("ci,ij,cj->c", wind, metric, wind) + (12 * d * numpy.trace(metric) / 3) ** 2)
        volume = h**3 / 6
        entries = volume * d * (gradients @ gradients.T)[None] + volume / 4 * along[:, None, :] + volume * tau[:, None, None] * along[:, :, None] * along[:, None, :]
        rows, columns = numpy.repeat(cells, 4, axis=1), numpy.tile(cells, (1, 4))
        matrix = matrix + scipy.sparse.coo_matrix((entries.ravel(), (rows.ravel(), columns.ravel())), shape=matrix.shape).tocsr()
        numpy.add.at(b_all, cells, volume / 4 + volume * tau[:, None] * along)
    inside = numpy.flatnonzero(((x > h / 2) & (x < 1 - h / 2)).all(1))
    return matrix[inside][:, inside].tocsr(), b_all[inside]
