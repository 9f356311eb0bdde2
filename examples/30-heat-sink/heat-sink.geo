// An aluminium heat sink with five fins, in metres: `gmsh -3 heat-sink.geo` writes heat-sink.msh.
SetFactory("OpenCASCADE");

width = 0.05;     // of the base, along x
depth = 0.04;     // along y
base = 0.005;     // height of the base
height = 0.025;   // of the fins
fin = 0.002;      // thickness of a fin
fins = 5;
chip = 0.016;     // side of the square that the chip heats

Box(1) = {0, 0, 0, width, depth, base};
For i In {0:fins-1}
  Box(2 + i) = {i*(width - fin)/(fins - 1), 0, base, fin, depth, height};
EndFor
BooleanUnion{ Volume{1}; Delete; }{ Volume{2:fins+1}; Delete; }
Rectangle(1000) = {(width - chip)/2, (depth - chip)/2, 0, chip, chip};
BooleanFragments{ Volume{:}; Delete; }{ Surface{1000}; Delete; }

e = 1e-6;
chip_side() = Surface In BoundingBox {(width-chip)/2-e, (depth-chip)/2-e, -e, (width+chip)/2+e, (depth+chip)/2+e, e};
below() = Surface In BoundingBox {-e, -e, -e, width+e, depth+e, e};
below() -= chip_side();
all() = Boundary{ Volume{:}; };
air() = Abs(all());
air() -= chip_side();
air() -= below();

Physical Volume("aluminium") = Volume{:};
Physical Surface("chip") = chip_side();
Physical Surface("air") = air();      // what is named nowhere, the rest of the underside, is insulated

Mesh.MeshSizeMax = 0.005;
