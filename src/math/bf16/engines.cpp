#include "src/math/bf16/engines.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "src/base/error.hpp"
#include "src/math/bf16/amx.hpp"
#include "src/math/bf16/attention.hpp"

namespace chorale::attention {
namespace {

using AmxTiles = bf16_products::Tiles<bf16_products::Amx, bf16_products::Vectors>;

#define FOR_VECTORS "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"
#define FOR_AMX FOR_VECTORS ",amx-tile,amx-bf16"

[[gnu::target(FOR_VECTORS)]] void attend_by_vectors(Bf16Queries& queries, std::int64_t width, const Bf16Keys& keys,
                                                    const Drops& drops) {
  attend_tiles<bf16_products::Vectors>(queries, width, keys, drops);
}
[[gnu::target(FOR_VECTORS)]] void backward_by_vectors(Bf16Gradients& g, std::int64_t query, std::int64_t rows,
                                                      std::int64_t key, const Drops& drops, const KeyGradients& sums) {
  add_tile_gradients<bf16_products::Vectors>(g, query, rows, key, drops, sums);
}

[[gnu::target(FOR_AMX)]] void attend_by_amx(Bf16Queries& queries, std::int64_t width, const Bf16Keys& keys,
                                            const Drops& drops) {
  attend_tiles<AmxTiles>(queries, width, keys, drops);
}
[[gnu::target(FOR_AMX)]] void backward_by_amx(Bf16Gradients& g, std::int64_t query, std::int64_t rows, std::int64_t key,
                                              const Drops& drops, const KeyGradients& sums) {
  add_tile_gradients<AmxTiles>(g, query, rows, key, drops, sums);
}

bool has_vectors() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}

// Linux (5.16 and newer) saves the tile registers of a process only if the process has requested this.
bool has_amx() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return has_vectors() && __builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

// Calls f with the type of the results.
template <class F>
void visit_bf16_results(DType results, F&& f) {
  results == DType::bf16 ? f(Type<bf16>{}) : f(Type<float>{});
}

}  // namespace

std::vector<Bf16Kernels> bf16_engines() {
  std::vector<Bf16Kernels> all;
  if (has_amx()) all.push_back({"amx", attend_by_amx, backward_by_amx});
  if (has_vectors()) all.push_back({"avx512_bf16", attend_by_vectors, backward_by_vectors});
  return all;
}

std::optional<Bf16Kernels> bf16_engine(std::string_view named) {
  const std::vector<Bf16Kernels> engines = bf16_engines();
  if (named == "f32") return std::nullopt;
  if (named.empty()) {  // on Intel, f32 is faster than AVX512_BF16
    const bool faster = !engines.empty() && (engines.front().name == std::string_view("amx") || __builtin_cpu_is("amd"));
    return faster ? std::optional(engines.front()) : std::nullopt;
  }
  std::string here = "f32";
  for (const Bf16Kernels& engine : engines) {
    if (named == engine.name) return engine;
    here += fmt::format(", {}", engine.name);
  }
  usage_error("this machine has no such instructions for attention in bf16", fmt::format("CHORALE_BF16_ATTENTION={}", named),
              fmt::format("it has: {}", here));
}

const Bf16Kernels* chosen_bf16_engine() {
  static const std::optional<Bf16Kernels> chosen = [] {
    const char* const named = std::getenv("CHORALE_BF16_ATTENTION");
    return bf16_engine(named ? named : "");
  }();
  return chosen ? &*chosen : nullptr;
}

std::string bf16_engine_name() { return chosen_bf16_engine() ? chosen_bf16_engine()->name : "f32"; }

void forward_in_bf16(const Bf16Kernels& kernels, const AttentionInput& in, const Tensor& out, const Tensor& lse,
                     const Queue& queue) {
  visit_bf16_results(out.dtype(), [&]<class S>(Type<S>) {
    forward<bf16, S, Bf16Keys>(in, out, lse, queue, [&] { return Bf16Queries(kernels, in.shape.width); });
  });
}

void backward_in_bf16(const Bf16Kernels& kernels, const AttentionInput& in, const Tensor& dout, const Tensor& out,
                      const Tensor& lse, const Tensor& dqkv, const KeyRows& dkeys, const Queue& queue) {
  visit_bf16_results(out.dtype(), [&]<class S>(Type<S>) {
    backward<bf16, S>(in, dout, out, lse, dqkv, dkeys, queue,
                      [&] { return Bf16Gradients(kernels, in.dropout.tokens.tokens, in.keys.count, in.shape.width); });
  });
}

}  // namespace chorale::attention
