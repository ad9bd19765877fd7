#include "trainer/model/gemm.h"

extern "C" {
void sgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
            const float* beta, float* c, const int* ldc);
void dgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k,
            const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
            const double* beta, double* c, const int* ldc);
}

namespace spes::trainer {

namespace {

// BLAS is column-major: the same memory read so holds the transposed matrices, and
// Cᵀ = op(B)ᵀ op(A)ᵀ.
template <class T, class F>
void Call(F blas, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
          const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c,
          std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  const char ta = op_a == Op::kPlain ? 'N' : 'T', tb = op_b == Op::kPlain ? 'N' : 'T';
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
  const int step_a = static_cast<int>(lda), step_b = static_cast<int>(ldb);
  const int step_c = static_cast<int>(ldc);
  blas(&tb, &ta, &columns, &rows, &inner, &alpha, b, &step_b, a, &step_a, &beta, c, &step_c);
}

}  // namespace

void Gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
          std::int64_t ldc) {
  Call(sgemm_, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void Gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta,
          double* c, std::int64_t ldc) {
  Call(dgemm_, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace spes::trainer
