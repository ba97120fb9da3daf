#include "src/math/matmul.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "src/base/error.hpp"
#include "src/math/onednn.hpp"

namespace chorale {
namespace {

using Place = dnnl::memory::desc;

Place matrix(std::int64_t rows, std::int64_t columns, bool transposed, DType dtype) {
  return {
      {rows, columns}, onednn::type_of(dtype), transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1}};
}

dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, const Matmul& p) {
  dnnl::primitive_attr attributes;
  if (p.accumulate) {
    dnnl::post_ops after;
    after.append_sum();
    attributes.set_post_ops(after);
  }
  return onednn::matmul(engine, matrix(p.m, p.k, p.x_transposed, p.input), matrix(p.k, p.n, p.w_transposed, p.input),
                        p.bias ? matrix(1, p.n, false, p.input) : Place(), matrix(p.m, p.n, false, p.output), attributes);
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

// A oneDNN primitive and its memory objects, whose pointers are set for each call.
class Matmuls::Ready {
 public:
  Ready(const dnnl::engine& engine, const Matmul& matmul) : Ready(engine, describe(engine, matmul)) {}

  void run(const dnnl::stream& stream, const void* x, const void* w, const void* bias, void* y) {
    const std::array<void*, 4> places{const_cast<void*>(x), const_cast<void*>(w), y, const_cast<void*>(bias)};
    constexpr std::array<int, 4> names{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
    std::array<dnnl_exec_arg_t, 4> arguments;
    const std::size_t given = bias ? 4 : 3;
    for (std::size_t i = 0; i < given; ++i) {
      operands_[i].set_data_handle(places[i]);
      arguments[i] = {names[i], operands_[i].get()};
    }
    // The C API is used here, because the C++ API builds a map of the arguments at each call.
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(given), arguments.data()),
        "a matrix product failed");
  }

 private:
  Ready(const dnnl::engine& engine, const dnnl::matmul::primitive_desc& description)
      : primitive_(description),
        operands_{
            dnnl::memory(description.src_desc(), engine, nullptr), dnnl::memory(description.weights_desc(), engine, nullptr),
            dnnl::memory(description.dst_desc(), engine, nullptr), dnnl::memory(description.bias_desc(), engine, nullptr)} {}

  dnnl::matmul primitive_;
  std::array<dnnl::memory, 4> operands_;
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
    auto found = ready.find(matmul);
    if (found == ready.end()) found = ready.try_emplace(matmul, library_->engine, matmul).first;
    found->second.run(library_->stream, x, w, bias, y);
  } catch (const dnnl::error& error) {
    throw Error(Exit::runtime,
                fmt::format("oneDNN {} failed to compute a matrix product: {}", onednn::version(), error.what()),
                fmt::format("[{}, {}]·[{}, {}] of {} into {} with {} threads", matmul.m, matmul.k, matmul.k, matmul.n,
                            name_of(matmul.input), name_of(matmul.output), matmul.threads),
                "if memory is short, use a smaller batch; else try another version of oneDNN");
  }
}

}  // namespace chorale
