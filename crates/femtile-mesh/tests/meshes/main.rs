//! Meshes made, read, written, refined and checked.

mod abaqus;
mod abaqus_include;
mod as_written;
mod begun_vtu;
mod boxes;
mod carp;
mod check;
mod check_overlaps;
mod check_samples;
mod curved_generators;
mod generated_check;
mod gmsh_binary;
mod gmsh_groups;
mod gmsh_versions;
mod higher_order;
mod hostile;
mod lagrange_vtu;
mod mfem;
mod pieces_vtu;
mod pieces_vtu_read;
mod planes;
mod refine;
mod round;
mod samples;
mod surface_vtu;
mod vtu;
