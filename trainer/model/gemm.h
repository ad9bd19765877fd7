// Matrix products on plain memory: the BLAS that LibTorch carries, without LibTorch's dispatcher,
// whose cost of some microseconds a call is that of a product of 128 × 128 matrices.
#pragma once

#include <cstdint>

namespace spes::trainer {

enum class Op { kPlain, kTransposed };

// C [m, n] = alpha · op(A) op(B) + beta · C with op(A) [m, k] and op(B) [k, n]; row-major, leading
// dimensions in elements. With beta 0, C need not be initialised. Uses the calling thread alone
// (InitLibTorch). The bits depend on the alignment of A, B and C to 64 bytes: keep it the same from
// run to run.
void Gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
          std::int64_t ldc);
void Gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta,
          double* c, std::int64_t ldc);

}  // namespace spes::trainer
