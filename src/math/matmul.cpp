#include "src/math/matmul.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>

#include "src/base/error.hpp"
#include "src/base/spare_memory.hpp"
#include "src/math/onednn.hpp"

namespace chorale {
namespace {

using Place = dnnl::memory::desc;

Place matrix(std::int64_t rows, std::int64_t columns, bool transposed, DType dtype) {
  return {
      {rows, columns}, onednn::type_of(dtype), transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1}};
}

// The operands of a product.
struct ProductPlaces {
  Place x, w, y, bias;

  explicit ProductPlaces(const Matmul& p)
      : x(matrix(p.m, p.k, p.x_transposed, p.input)),
        w(matrix(p.k, p.n, p.w_transposed, p.input)),
        y(matrix(p.m, p.n, false, p.output)),
        bias(p.bias ? matrix(1, p.n, false, p.input) : Place()) {}
};

// Returns the product to prepare. If the number of tokens is left open, all numbers of tokens share one prepared product.
Matmul prepared(Matmul p) {
  if (p.any_tokens) (p.x_transposed ? p.k : p.m) = DNNL_RUNTIME_DIM_VAL;
  return p;
}

dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, const Matmul& p) {
  dnnl::primitive_attr attributes;
  if (p.accumulate) {
    dnnl::post_ops after;
    after.append_sum();
    attributes.set_post_ops(after);
  }
  const ProductPlaces places(p);
  return onednn::matmul(engine, places.x, places.w, places.bias, places.y, attributes);
}

bool can(const dnnl::engine& engine, DType input) {
  try {
    describe(engine, {.m = 16, .n = 16, .k = 16, .input = input, .output = input, .bias = true});
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace

// A oneDNN primitive and the memory objects of its operands, whose pointers are set in each call. If the number of tokens is
// open, each call creates these objects.
class Matmuls::Ready {
 public:
  Ready(const dnnl::engine& engine, const Matmul& matmul) : engine_(engine), primitive_(describe(engine, matmul)) {
    if (!matmul.any_tokens) operands_.emplace(engine, matmul);
  }

  void run(const dnnl::stream& stream, const Matmul& matmul, const void* x, const void* w, const void* bias, void* y) {
    if (operands_) return run(stream, *operands_, x, w, bias, y);
    Operands operands(engine_, matmul);
    run(stream, operands, x, w, bias, y);
  }

 private:
  struct Operands {
    dnnl::memory x, w, y, bias;

    Operands(const dnnl::engine& engine, const Matmul& matmul) : Operands(engine, ProductPlaces(matmul)) {}
    Operands(const dnnl::engine& engine, const ProductPlaces& places)
        : x(places.x, engine, nullptr),
          w(places.w, engine, nullptr),
          y(places.y, engine, nullptr),
          bias(places.bias, engine, nullptr) {}
  };

  void run(const dnnl::stream& stream, Operands& operands, const void* x, const void* w, const void* bias, void* y) {
    const auto at = [](int name, dnnl::memory& operand, const void* place) {
      operand.set_data_handle(const_cast<void*>(place));
      return dnnl_exec_arg_t{name, operand.get()};
    };
    const std::array arguments{at(DNNL_ARG_SRC, operands.x, x), at(DNNL_ARG_WEIGHTS, operands.w, w),
                               at(DNNL_ARG_DST, operands.y, y), at(DNNL_ARG_BIAS, operands.bias, bias)};
    // Uses the C API, because the C++ API builds a map of the arguments in each call.
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream.get(), bias ? 4 : 3, arguments.data()),
                            "a matrix product failed");
  }

  dnnl::engine engine_;
  dnnl::matmul primitive_;
  std::optional<Operands> operands_;
};

struct Matmuls::Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  bool bf16 = can(engine, DType::bf16), f16 = can(engine, DType::f16);
  std::map<Matmul, Ready> ready;
};

Matmuls::Matmuls() : library_(std::make_unique<Library>()) {}
Matmuls::~Matmuls() = default;

bool Matmuls::supports(DType input) const {
  return input == DType::f32 || (input == DType::bf16 && library_->bf16) || (input == DType::f16 && library_->f16);
}

void Matmuls::run(const Matmul& matmul, const void* x, const void* w, const void* bias, void* y) {
  const onednn::Threads threads(matmul.threads);
  try {
    auto& ready = library_->ready;
    const Matmul key = prepared(matmul);
    auto found = ready.find(key);
    if (found == ready.end()) {
      require_spare_memory("oneDNN");
      found = ready.try_emplace(key, library_->engine, key).first;
    }
    found->second.run(library_->stream, matmul, x, w, bias, y);
  } catch (const dnnl::error& error) {
    throw Error(Exit::runtime,
                fmt::format("oneDNN {} failed to compute a matrix product: {}", onednn::version(), error.what()),
                fmt::format("[{}, {}]·[{}, {}] of {} into {} with {} threads", matmul.m, matmul.k, matmul.k, matmul.n,
                            name_of(matmul.input), name_of(matmul.output), matmul.threads),
                "if memory is short, use a smaller batch; else try another version of oneDNN");
  }
}

}  // namespace chorale
