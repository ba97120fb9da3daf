// Small models for tests that import from and export to the Hugging Face format.
#pragma once
#include <cstring>

#include "parallel/state/hugging_face.hpp"
#include "tests/catch.hpp"

namespace chorale::test {

struct Host {
  HostMemory memory;
  Ledger ledger;
  Allocator allocator{memory, ledger};
};

inline ModelShape small_dense(ModelFamily family) {
  ModelShape shape{
      .family = family, .layers = 2, .heads = 4, .groups = 4, .width = 8, .ffn = 12, .sequence = 5, .vocabulary = 11};
  if (shape.llama()) {
    shape.groups = 2;
    shape.tied = false;
    shape.epsilon = 1e-6;
    shape.rotary_base = 5e5;
  }
  return shape;
}

inline ModelShape mixtral() {
  ModelShape shape = small_dense(ModelFamily::llama);
  shape.experts = {.count = 3, .chosen = 2, .ffn = 12, .balance = 0.25};
  return shape;
}

// The total width of the heads exceeds the model's width, and the first block is dense.
inline ModelShape qwen3_moe() {
  ModelShape shape = mixtral();
  shape.head = 6;
  shape.qk_norm = true;
  shape.ffn = 20;
  shape.experts.every = 2;
  shape.experts.before_choice = true;
  return shape;
}

inline ModelShape qwen3() {
  ModelShape shape = qwen3_moe();
  shape.experts = {};
  return shape;
}

inline std::vector<ModelShape> all_shapes() {
  return {small_dense(ModelFamily::gpt2), small_dense(ModelFamily::llama), mixtral(), qwen3_moe(), qwen3()};
}

// The elements have arbitrary bits, and some of them are NaNs.
inline NamedTensors distinct(const ModelShape& shape, DType dtype, Allocator& allocator) {
  NamedTensors tensors;
  std::uint64_t next = 0;
  for (const Renamed& name : names_of(shape)) {
    Tensor& tensor = tensors[name.ours];
    if (tensor) continue;
    tensor = Tensor(allocator, name.shape_ours, dtype, Category::params);
    auto* place = static_cast<std::byte*>(tensor.slice().data);
    for (std::int64_t i = 0; i < tensor.count(); ++i, place += size_of(dtype)) {
      const std::uint64_t bits = ++next * 0x9E3779B97F4A7C15u >> 7;
      std::memcpy(place, &bits, static_cast<std::size_t>(size_of(dtype)));
    }
  }
  return tensors;
}

inline bool same_bits(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.shape() != tensor.shape() || other->second.dtype() != tensor.dtype()) return false;
    if (std::memcmp(tensor.slice().data, other->second.slice().data, static_cast<std::size_t>(tensor.bytes())) != 0)
      return false;
  }
  return true;
}

inline float value_in(const safetensors::File& file, const std::string& name, std::int64_t row, std::int64_t column) {
  const safetensors::Entry* entry = file.find(name);
  REQUIRE(entry);
  float value;
  std::memcpy(&value, file.data(*entry).data() + (row * entry->shape.back() + column) * 4, 4);
  return value;
}

}  // namespace chorale::test
