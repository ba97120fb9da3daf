// cuBLASLt is column-major, so it interprets a row-major [rows, columns] matrix as [columns, rows]. Therefore y = x·w is
// computed as yᵀ = wᵀ·xᵀ.
#include "src/math/cuda/blas.cuh"

#include <cublasLt.h>

#include <map>

#include "src/base/handle.hpp"
#include "src/math/cuda/device.cuh"
#include "src/math/cuda/pack.cuh"

namespace chorale::cuda {
namespace {

void check(cublasStatus_t status, std::source_location where = std::source_location::current()) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(Exit::runtime, "a cuBLASLt call failed", cublasLtGetStatusString(status),
                "check that the driver is new enough for this CUDA Toolkit", where);
}

struct LibraryTraits {
  using type = cublasLtHandle_t;
  static type none() { return nullptr; }
  static void close(type handle) noexcept { cublasLtDestroy(handle); }
};
struct DescriptionTraits {
  using type = cublasLtMatmulDesc_t;
  static type none() { return nullptr; }
  static void close(type description) noexcept { cublasLtMatmulDescDestroy(description); }
};
struct LayoutTraits {
  using type = cublasLtMatrixLayout_t;
  static type none() { return nullptr; }
  static void close(type layout) noexcept { cublasLtMatrixLayoutDestroy(layout); }
};
struct PreferenceTraits {
  using type = cublasLtMatmulPreference_t;
  static type none() { return nullptr; }
  static void close(type preference) noexcept { cublasLtMatmulPreferenceDestroy(preference); }
};
using Layout = Handle<LayoutTraits>;

constexpr std::size_t room_bytes = 32 << 20;  // the workspace size that NVIDIA recommends for Hopper and newer

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::bf16  ? CUDA_R_16BF
         : dtype == DType::f16 ? CUDA_R_16F
         : dtype == DType::f64 ? CUDA_R_64F
                               : CUDA_R_32F;
}

Layout layout(DType dtype, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type_of(dtype), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), columns));
  return Layout(made);
}

// A prepared product: the layouts of its operands, and the algorithm that cuBLASLt prefers for its shape.
struct Ready {
  Handle<DescriptionTraits> description;
  Layout x, w, y;
  cublasLtMatmulAlgo_t algorithm;
};

void set_bias(cublasLtMatmulDesc_t description, const void* bias) {
  check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
}

Ready make_ready(cublasLtHandle_t library, const Matmul& p, const void* bias, bool on_sixteen) {
  const bool wide = p.input == DType::f64;
  Ready ready{.x = p.x_transposed ? layout(p.input, p.k, p.m) : layout(p.input, p.m, p.k),
              .w = p.w_transposed ? layout(p.input, p.n, p.k) : layout(p.input, p.k, p.n),
              .y = layout(p.output, p.m, p.n)};
  cublasLtMatmulDesc_t description = nullptr;
  check(cublasLtMatmulDescCreate(&description, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                 wide ? CUDA_R_64F : CUDA_R_32F));
  ready.description.reset(description);
  const auto turned = [&](cublasLtMatmulDescAttributes_t operand, bool transposed) {
    const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(description, operand, &operation, sizeof operation));
  };
  turned(CUBLASLT_MATMUL_DESC_TRANSA, p.w_transposed);
  turned(CUBLASLT_MATMUL_DESC_TRANSB, p.x_transposed);
  if (p.bias) {
    const cublasLtEpilogue_t adds = CUBLASLT_EPILOGUE_BIAS;
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &adds, sizeof adds));
    set_bias(description, bias);
  }

  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made));
  const Handle<PreferenceTraits> preference(made);
  check(
      cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room_bytes, sizeof room_bytes));
  // If cuBLASLt splits k, this scheme adds the partial sums in the compute type. All other schemes first round the partial
  // sums to 16 bits.
  const std::uint32_t in_compute_type = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  check(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_compute_type,
                                             sizeof in_compute_type));
  const std::uint32_t least = on_sixteen ? 16 : static_cast<std::uint32_t>(size_of(p.input));
  for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    check(cublasLtMatmulPreferenceSetAttribute(made, operand, &least, sizeof least));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(library, description, ready.w.get(), ready.x.get(), ready.y.get(), ready.y.get(),
                                       made, 1, &best, &found));
  if (found == 0) check(CUBLAS_STATUS_NOT_SUPPORTED);
  ready.algorithm = best.algo;
  return ready;
}

}  // namespace

struct Blas::Library {
  Handle<LibraryTraits> handle;
  // The key consists of the product and whether all operands are 16-byte aligned (slices of a tensor can be unaligned).
  std::map<std::pair<Matmul, bool>, Ready> ready;
};

Blas::Blas() : library_(std::make_unique<Library>()) {}
Blas::~Blas() = default;

std::int64_t Blas::workspace_bytes() { return room_bytes; }

void Blas::run(const Matmul& product, const void* x, const void* w, const void* bias, void* y, const Queue& queue) {
  if (!library_->handle) {
    cublasLtHandle_t made = nullptr;
    check(cublasLtCreate(&made));
    library_->handle.reset(made);
  }
  const std::pair key{product, aligned(x, w, bias, y)};
  auto found = library_->ready.find(key);
  if (found == library_->ready.end())
    found = library_->ready.emplace(key, make_ready(library_->handle.get(), product, bias, key.second)).first;
  const Ready& ready = found->second;
  if (product.bias) set_bias(ready.description.get(), bias);  // set for each call, because each layer has its own bias
  const float one = 1, rest = product.accumulate ? 1 : 0;
  const double one_wide = one, rest_wide = rest;
  const bool wide = product.input == DType::f64;
  const Scratch<std::byte> workspace(room_bytes, queue);
  check(cublasLtMatmul(library_->handle.get(), ready.description.get(), wide ? static_cast<const void*>(&one_wide) : &one, w,
                       ready.w.get(), x, ready.x.get(), wide ? static_cast<const void*>(&rest_wide) : &rest, y,
                       ready.y.get(), y, ready.y.get(), &ready.algorithm, workspace.get(), room_bytes, stream_of(queue)));
}

}  // namespace chorale::cuda
