// Selects the engine that multiplies attention's bf16 tiles on this processor. The engine is selected at run time, because
// one build can run on many machines.
//
//   engine         where                                     speed of products, relative to f32
//   amx            Intel since Sapphire Rapids, Linux 5.16   up to 16
//   avx512_bf16    AMD since Zen 4                           2
//                  Intel since Cooper Lake                   0.6; used only if CHORALE_BF16_ATTENTION names it
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/math/bf16/groups.hpp"

namespace chorale::attention {

std::vector<Bf16Kernels> bf16_engines();  // the engines that this machine can run, fastest first
// Returns the engine of this name, or the fastest engine if the name is empty. Returns no value if this engine is f32.
// Throws a usage error if this machine lacks the engine.
std::optional<Bf16Kernels> bf16_engine(std::string_view named);
const Bf16Kernels* chosen_bf16_engine();  // the engine that CHORALE_BF16_ATTENTION names, or the default; null: f32
std::string bf16_engine_name();           // the name of the chosen engine, or "f32"

// Computes attention of bf16 tensors with one engine. The caller must have checked the arguments.
void forward_in_bf16(const Bf16Kernels& kernels, const AttentionInput& in, const Tensor& out, const Tensor& lse,
                     const Queue& queue);
void backward_in_bf16(const Bf16Kernels& kernels, const AttentionInput& in, const Tensor& dout, const Tensor& out,
                      const Tensor& lse, const Tensor& dqkv, const KeyRows& dkeys, const Queue& queue);

}  // namespace chorale::attention
