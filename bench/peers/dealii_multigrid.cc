// Times conjugate gradients of deal.II with a V-cycle of geometric multigrid in single precision, smoothed by Chebyshev
// polynomials as in its tutorial step-37: −Δu = 1 on the unit cube, u = 0 on the boundary, elements of degree DEGREE.
//
// Arguments: cells a side of the coarsest mesh, refinements, number of solves, tolerance relative to the right side.
// Prints JSON. The set-up begins without a mesh. Several ranks of MPI divide the work.

#include <cstdio>
#include <cstdlib>

#include <deal.II/base/mpi.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/mapping_q1.h>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/tria.h>
#include <deal.II/lac/diagonal_matrix.h>
#include <deal.II/lac/precondition.h>
#include <deal.II/lac/solver_cg.h>
#include <deal.II/lac/solver_control.h>
#include <deal.II/multigrid/mg_coarse.h>
#include <deal.II/multigrid/mg_constrained_dofs.h>
#include <deal.II/multigrid/mg_matrix.h>
#include <deal.II/multigrid/mg_smoother.h>
#include <deal.II/multigrid/mg_transfer_matrix_free.h>
#include <deal.II/multigrid/multigrid.h>

#include "dealii_laplace.h"

using Operator = Laplace<DEGREE, double>;
using LevelOperator = Laplace<DEGREE, float>;
using Smoother = dealii::PreconditionChebyshev<LevelOperator, Vector<float>>;
using Transfer = dealii::MGTransferMatrixFree<3, float>;
template <typename Item> using Levels = dealii::MGLevelObject<Item>;

// The cube refined uniformly, with the unknowns of all levels.
struct Space {
    std::unique_ptr<dealii::Triangulation<3>> mesh = empty_mesh();
    dealii::FE_Q<3> element{DEGREE};
    dealii::DoFHandler<3> unknowns{*mesh};
    dealii::AffineConstraints<double> boundary;
    dealii::MGConstrainedDoFs boundary_of_levels;

    Space(unsigned coarsest, unsigned refinements) {
        dealii::GridGenerator::subdivided_hyper_cube(*mesh, coarsest);
        mesh->refine_global(refinements);
        unknowns.distribute_dofs(element);
        unknowns.distribute_mg_dofs();
        clear(boundary, unknowns);
        dealii::DoFTools::make_zero_boundary_constraints(unknowns, boundary);
        boundary.close();
        boundary_of_levels.initialize(unknowns);
        boundary_of_levels.make_zero_boundary_constraints(unknowns, {0});
    }
};

// A V-cycle, with what it refers to.
class Cycle {
  public:
    explicit Cycle(const Space &space)
        : finest(space.mesh->n_global_levels() - 1), operators(0, finest), transfer(space.boundary_of_levels) {
        // Vectors of the cycle have the ghosts of the operators.
        std::vector<std::shared_ptr<const dealii::Utilities::MPI::Partitioner>> partitioners;
        Levels<Smoother::AdditionalData> settings(0, finest);
        for (unsigned level = 0; level <= finest; ++level) {
            dealii::IndexSet known;
            dealii::DoFTools::extract_locally_relevant_level_dofs(space.unknowns, level, known);
            dealii::AffineConstraints<double> boundary(known);
            boundary.add_lines(space.boundary_of_levels.get_boundary_indices(level));
            boundary.close();
            operators[level].initialize(
                matrix_free<float>(dealii::MappingQ1<3>(), space.unknowns, boundary, dealii::QGauss<1>(DEGREE + 1), level));
            partitioners.push_back(operators[level].partitioner());
            Smoother::AdditionalData &of_level = settings[level];
            of_level.constraints.copy_from(boundary);
            of_level.preconditioner = std::make_shared<dealii::DiagonalMatrix<Vector<float>>>(operators[level].inverse_diagonal());
            of_level.smoothing_range = level > 0 ? 15.0 : 1e-3;
            of_level.degree = level > 0 ? 5 : dealii::numbers::invalid_unsigned_int;
            of_level.eig_cg_n_iterations = level > 0 ? 10 : operators[level].m();
        }
        transfer.build(space.unknowns, partitioners);
        smoother.initialize(operators, settings);
        coarsest.initialize(smoother);
        matrices.initialize(operators);
        multigrid = std::make_unique<dealii::Multigrid<Vector<float>>>(matrices, coarsest, transfer, smoother, smoother);
        preconditioner = std::make_unique<Preconditioner>(space.unknowns, *multigrid, transfer);
    }

    using Preconditioner = dealii::PreconditionMG<3, Vector<float>, Transfer>;
    const Preconditioner &get() const { return *preconditioner; }

  private:
    unsigned finest;
    Levels<LevelOperator> operators;
    Transfer transfer;
    dealii::mg::SmootherRelaxation<Smoother, Vector<float>> smoother;
    dealii::MGCoarseGridApplySmoother<Vector<float>> coarsest;
    dealii::mg::Matrix<Vector<float>> matrices;
    std::unique_ptr<dealii::Multigrid<Vector<float>>> multigrid;
    std::unique_ptr<Preconditioner> preconditioner;
};

// The integrals of the shape functions, zero on the boundary.
Vector<double> load(const MatrixFree<3, double> &cells, const dealii::AffineConstraints<double> &boundary) {
    Vector<double> b;
    cells.initialize_dof_vector(b);
    Operator::Evaluation phi(cells);
    for (unsigned batch = 0; batch < cells.n_cell_batches(); ++batch) {
        phi.reinit(batch);
        for (unsigned q = 0; q < phi.n_q_points; ++q) phi.submit_value(VectorizedArray<double>(1.0), q);
        phi.integrate_scatter(dealii::EvaluationFlags::values, b);
    }
    b.compress(dealii::VectorOperation::add);
    boundary.set_zero(b);
    return b;
}

int main(int count, char **arguments) {
    const dealii::Utilities::MPI::MPI_InitFinalize mpi(count, arguments, 1);
    if (count != 5) return std::fprintf(stderr, "four arguments are needed\n"), 1;
    const unsigned coarsest = std::atoi(arguments[1]), refinements = std::atoi(arguments[2]);
    const unsigned runs = std::atoi(arguments[3]);
    const double tolerance = std::atof(arguments[4]);

    const double begun = now();
    const Space space(coarsest, refinements);
    const auto cells =
        matrix_free<double>(dealii::MappingQ1<3>(), space.unknowns, space.boundary, dealii::QGauss<1>(DEGREE + 1));
    Operator a;
    a.initialize(cells);
    const Cycle cycle(space);
    const Vector<double> b = load(*cells, space.boundary);
    const double seconds_setup = now() - begun;

    Vector<double> x(b);
    std::vector<double> seconds;
    dealii::SolverControl control(100, tolerance * b.l2_norm());
    for (unsigned run = 0; run < runs; ++run) {
        x = 0.0;
        const double begun = now();
        dealii::SolverCG<Vector<double>>(control).solve(a, x, b, cycle.get());
        seconds.push_back(now() - begun);
    }
    Vector<double> r(b);
    a.vmult(r, x);
    r.sadd(-1.0, 1.0, b);
    const double largest = x.linfty_norm(), residual = r.l2_norm() / b.l2_norm();
    if (prints()) std::printf("{\"library\": \"deal.II %s\", \"lanes\": %u, \"n_dofs\": %llu, \"iterations\": %u, \"residual\": %.3e, "
                "\"largest\": %.12e, \"seconds_setup\": [%.6f], \"seconds_solve\": %s}\n",
                DEAL_II_PACKAGE_VERSION, unsigned(VectorizedArray<double>::size()),
                static_cast<unsigned long long>(space.unknowns.n_dofs()), control.last_step(), residual, largest, seconds_setup, json(seconds).c_str());
}
