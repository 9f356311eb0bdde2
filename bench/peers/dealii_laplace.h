// The Laplacian of deal.II without a matrix, as its documentation shows it: updates of vectors may run within the loop
// over cells, which SolverCG and PreconditionChebyshev then make use of.

#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <deal.II/base/mpi.h>
#include <deal.II/base/quadrature_lib.h>
#include <deal.II/distributed/tria.h>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/grid/tria.h>
#include <deal.II/lac/affine_constraints.h>
#include <deal.II/lac/la_parallel_vector.h>
#include <deal.II/matrix_free/fe_evaluation.h>
#include <deal.II/matrix_free/matrix_free.h>

using dealii::MatrixFree;
using dealii::VectorizedArray;
template <typename Number> using Vector = dealii::LinearAlgebra::distributed::Vector<Number>;

// The time when all ranks are there.
inline double now() {
    MPI_Barrier(MPI_COMM_WORLD);
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline std::string json(const std::vector<double> &numbers) {
    std::ostringstream text;
    text.precision(12);
    for (size_t i = 0; i < numbers.size(); ++i) text << (i ? ", " : "") << numbers[i];
    return "[" + text.str() + "]";
}

// An empty mesh, which ranks divide among themselves where there are several.
inline std::unique_ptr<dealii::Triangulation<3>> empty_mesh() {
    const auto at_vertices = dealii::Triangulation<3>::limit_level_difference_at_vertices;
    using Distributed = dealii::parallel::distributed::Triangulation<3>;
    if (dealii::Utilities::MPI::n_mpi_processes(MPI_COMM_WORLD) == 1) return std::make_unique<dealii::Triangulation<3>>(at_vertices);
    return std::make_unique<Distributed>(MPI_COMM_WORLD, at_vertices, Distributed::construct_multigrid_hierarchy);
}

// Constraints without lines, of the unknowns that a rank knows.
inline void clear(dealii::AffineConstraints<double> &constraints, const dealii::DoFHandler<3> &unknowns) {
    dealii::IndexSet known;
    dealii::DoFTools::extract_locally_relevant_dofs(unknowns, known);
    constraints.reinit(known);
}

// Whether this process prints the results.
inline bool prints() { return dealii::Utilities::MPI::this_mpi_process(MPI_COMM_WORLD) == 0; }

// Cells, unknowns and metrics on one thread of each rank, of the active cells or of those of a level.
template <typename Number>
std::shared_ptr<const MatrixFree<3, Number>> matrix_free(const dealii::Mapping<3> &mapping,
                                                         const dealii::DoFHandler<3> &unknowns,
                                                         const dealii::AffineConstraints<double> &constraints,
                                                         const dealii::Quadrature<1> &rule,
                                                         unsigned level = dealii::numbers::invalid_unsigned_int) {
    typename MatrixFree<3, Number>::AdditionalData settings;
    settings.tasks_parallel_scheme = MatrixFree<3, Number>::AdditionalData::none;
    settings.mapping_update_flags = dealii::update_gradients | dealii::update_JxW_values;
    settings.mg_level = level;
    auto data = std::make_shared<MatrixFree<3, Number>>();
    data->reinit(mapping, unknowns, constraints, rule, settings);
    return data;
}

// Rows of constrained unknowns are zero.
template <int degree, typename Number> class Laplace : public dealii::Subscriptor {
  public:
    using value_type = Number;
    using size_type = dealii::types::global_dof_index;
    using Lanes = VectorizedArray<Number>;
    using Evaluation = dealii::FEEvaluation<3, degree, degree + 1, 1, Number>;
    using Range = std::function<void(unsigned, unsigned)>;
    static constexpr unsigned n = degree + 1, n_points = n * n * n;

    void initialize(std::shared_ptr<const MatrixFree<3, Number>> data_of_cells) { data = data_of_cells; }

    // From now on products read six numbers a point in place of what deal.II stores.
    void store_coefficients() {
        Evaluation phi(*data);
        stored.resize_fast(size_t(data->n_cell_batches()) * n_points);
        for (unsigned batch = 0; batch < data->n_cell_batches(); ++batch) {
            phi.reinit(batch);
            for (unsigned q = 0; q < n_points; ++q) stored[size_t(batch) * n_points + q] = coefficients(phi, q);
        }
    }

    void vmult(Vector<Number> &y, const Vector<Number> &x) const {
        data->cell_loop(&Laplace::add_cells, this, y, x, true);
    }

    // `before` runs on entries before the first cell reads them, `after` once the last has written them.
    void vmult(Vector<Number> &y, const Vector<Number> &x, const Range &before, const Range &after) const {
        data->cell_loop(&Laplace::add_cells, this, y, x, before, after);
    }

    void Tvmult(Vector<Number> &y, const Vector<Number> &x) const { vmult(y, x); }

    size_type m() const { return data->get_dof_handler().n_dofs(data->get_mg_level()); }

    // Only PreconditionChebyshev without a diagonal would ask for entries.
    Number el(size_type, size_type) const { throw dealii::ExcNotImplemented(); }

    std::shared_ptr<const dealii::Utilities::MPI::Partitioner> partitioner() const { return data->get_vector_partitioner(); }

    void initialize_dof_vector(Vector<Number> &x) const { data->initialize_dof_vector(x); }

    // The diagonal by sum factorization; zero in rows of constrained unknowns.
    Vector<Number> diagonal() const {
        Vector<Number> sum;
        initialize_dof_vector(sum);
        Evaluation phi(*data);
        for (unsigned batch = 0; batch < data->n_cell_batches(); ++batch) {
            phi.reinit(batch);
            std::fill_n(phi.begin_dof_values(), n_points, Lanes(Number(0)));
            for (unsigned term = 0; term < 6; ++term) add_diagonal_term(phi, term);
            phi.distribute_local_to_global(sum);
        }
        sum.compress(dealii::VectorOperation::add);
        return sum;
    }

    // One over the diagonal; ones in rows of constrained unknowns.
    Vector<Number> inverse_diagonal() const {
        Vector<Number> inverse = diagonal();
        for (Number &entry : inverse) entry = entry != Number(0) ? Number(1) / entry : Number(1);
        return inverse;
    }

  private:
    using Coefficients = std::array<Lanes, 6>;
    using Tensor = std::array<Lanes, n_points>;
    // Axes of the derivatives that each coefficient belongs to.
    static constexpr unsigned axes[6][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}};

    std::shared_ptr<const MatrixFree<3, Number>> data;
    dealii::AlignedVector<Coefficients> stored;

    // The entries of w J⁻¹J⁻ᵀ at a point.
    static Coefficients coefficients(const Evaluation &phi, unsigned q) {
        const dealii::Tensor<2, 3, Lanes> inverse = phi.inverse_jacobian(q);
        Coefficients found;
        for (unsigned term = 0; term < 6; ++term) {
            const unsigned a = axes[term][0], b = axes[term][1];
            found[term] = phi.JxW(q) *
                          (inverse[0][a] * inverse[0][b] + inverse[1][a] * inverse[1][b] + inverse[2][a] * inverse[2][b]);
        }
        return found;
    }

    void add_cells(const MatrixFree<3, Number> &, Vector<Number> &y, const Vector<Number> &x,
                   const std::pair<unsigned, unsigned> &batches) const {
        Evaluation phi(*data);
        for (unsigned batch = batches.first; batch < batches.second; ++batch) {
            phi.reinit(batch);
            phi.gather_evaluate(x, dealii::EvaluationFlags::gradients);
            if (stored.empty())
                for (unsigned q = 0; q < n_points; ++q) phi.submit_gradient(phi.get_gradient(q), q);
            else
                multiply(phi.begin_gradients(), &stored[size_t(batch) * n_points]);
            phi.integrate_scatter(dealii::EvaluationFlags::gradients, y);
        }
    }

    static void multiply(Lanes *gradients, const Coefficients *of_points) {
        for (unsigned q = 0; q < n_points; ++q) {
            const Coefficients &c = of_points[q];
            const Lanes x = gradients[q], y = gradients[q + n_points], z = gradients[q + 2 * n_points];
            gradients[q] = c[0] * x + c[1] * y + c[2] * z;
            gradients[q + n_points] = c[1] * x + c[3] * y + c[4] * z;
            gradients[q + 2 * n_points] = c[2] * x + c[4] * y + c[5] * z;
        }
    }

    // Adds what one coefficient contributes to the diagonal of a batch: a product of squares of 1-D shape functions.
    static void add_diagonal_term(Evaluation &phi, unsigned term) {
        const auto &shapes = phi.get_shape_info().data[0];
        const unsigned a = axes[term][0], b = axes[term][1];
        Tensor now, next;
        for (unsigned q = 0; q < n_points; ++q) now[q] = Number(a == b ? 1 : 2) * coefficients(phi, q)[term];
        for (unsigned axis = 0, stride = 1; axis < 3; ++axis, stride *= n) {
            const auto &left = axis == a ? shapes.shape_gradients : shapes.shape_values;
            const auto &right = axis == b ? shapes.shape_gradients : shapes.shape_values;
            for (unsigned at = 0; at < n_points; ++at) {
                const unsigned i = at / stride % n, first = at - i * stride;
                next[at] = Number(0);
                for (unsigned q = 0; q < n; ++q)
                    next[at] += left[i * n + q] * right[i * n + q] * now[first + q * stride];
            }
            now = next;
        }
        for (unsigned at = 0; at < n_points; ++at) phi.begin_dof_values()[at] += now[at];
    }
};
