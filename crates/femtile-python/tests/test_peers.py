"""Conditions and interfaces agree with scikit-fem: the rows of `bench/peers/conditions.py`, small."""

import runpy
from pathlib import Path

import pytest

for module in ["skfem", "meshio", "scipy"]:
    pytest.importorskip(module)

PEERS = runpy.run_path(str(Path(__file__).parents[3] / "bench/peers/conditions.py"))


@pytest.mark.parametrize("name", PEERS["ROWS"])
def test_a_condition_has_the_values_of_scikit_fem(name):
    found = PEERS["compare"](PEERS["ROWS"][name], 8)
    differences = [value for key, value in found.items() if key.startswith("difference")]
    assert differences and max(differences) < 1e-10, found
