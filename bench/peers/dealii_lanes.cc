// The parts of deal.II that depend on the number of lanes, for all lanes of the configuration that is compiled against:
// packages such as Debian's have them for one lane only.

#include <cstdlib>

#include <deal.II/base/mpi.templates.h>
#include <deal.II/matrix_free/dof_info.templates.h>
#include <deal.II/matrix_free/evaluation_kernels.h>
#include <deal.II/matrix_free/evaluation_template_factory.h>
#include <deal.II/matrix_free/mapping_info.templates.h>
#include <deal.II/matrix_free/mapping_info_storage.templates.h>
#include <deal.II/matrix_free/matrix_free.templates.h>
#include <deal.II/matrix_free/shape_info.templates.h>

DEAL_II_NAMESPACE_OPEN

#define MATRIX_FREE(Number)                                                                                            \
    template class MatrixFree<3, Number, VectorizedArray<Number>>;                                                     \
    template void MatrixFree<3, Number, VectorizedArray<Number>>::internal_reinit(                                     \
        const std::shared_ptr<hp::MappingCollection<3>> &, const std::vector<const DoFHandler<3, 3> *> &,              \
        const std::vector<const AffineConstraints<double> *> &, const std::vector<IndexSet> &,                         \
        const std::vector<hp::QCollection<3>> &, const AdditionalData &);                                              \
    template struct internal::MatrixFreeFunctions::MappingInfo<3, Number, VectorizedArray<Number>>;                    \
    template struct internal::MatrixFreeFunctions::MappingInfoStorage<3, 3, VectorizedArray<Number>>;                  \
    template struct internal::MatrixFreeFunctions::MappingInfoStorage<2, 3, VectorizedArray<Number>>;                  \
    template struct internal::MatrixFreeFunctions::ShapeInfo<VectorizedArray<Number>>;                                 \
    template void internal::MatrixFreeFunctions::ShapeInfo<VectorizedArray<Number>>::reinit<3, 3, 1>(                  \
        const Quadrature<1> &, const FiniteElement<3, 3> &, const unsigned int);                                       \
    template void internal::MatrixFreeFunctions::ShapeInfo<VectorizedArray<Number>>::reinit<3, 3, 3>(                  \
        const Quadrature<3> &, const FiniteElement<3, 3> &, const unsigned int);

MATRIX_FREE(double)
MATRIX_FREE(float)

namespace internal {

// The set-up of metrics evaluates maps of any degree; products have their degree compiled in. Faces and hanging nodes do
// not occur.
#define FACTORIES(Number)                                                                                              \
    template <>                                                                                                        \
    void FEEvaluationFactory<3, VectorizedArray<Number>>::evaluate(                                                    \
        const unsigned int n_components, const EvaluationFlags::EvaluationFlags flags,                                 \
        const VectorizedArray<Number> *values, FEEvaluationData<3, VectorizedArray<Number>, false> &evaluation) {      \
        FEEvaluationImplEvaluateSelector<3, VectorizedArray<Number>>::template run<-1, 0>(n_components, flags, values, \
                                                                                          evaluation);                 \
    }                                                                                                                  \
    template <>                                                                                                        \
    void FEFaceEvaluationFactory<3, VectorizedArray<Number>>::evaluate(                                                \
        const unsigned int, const EvaluationFlags::EvaluationFlags, const VectorizedArray<Number> *,                   \
        FEEvaluationData<3, VectorizedArray<Number>, true> &) {                                                        \
        std::abort();                                                                                                  \
    }                                                                                                                  \
    template <>                                                                                                        \
    void FEEvaluationHangingNodesFactory<3, Number, VectorizedArray<Number>>::apply(                                   \
        const unsigned int, const unsigned int, const MatrixFreeFunctions::ShapeInfo<VectorizedArray<Number>> &,       \
        const bool,                                                                                                    \
        const std::array<MatrixFreeFunctions::compressed_constraint_kind, VectorizedArray<Number>::size()> &,          \
        VectorizedArray<Number> *) {                                                                                   \
        std::abort();                                                                                                  \
    }

FACTORIES(double)
FACTORIES(float)

} // namespace internal

DEAL_II_NAMESPACE_CLOSE
