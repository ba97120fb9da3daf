// A small state that can be distributed over any number of ranks. Each element is a function of the tensor's number, the
// element's index in the full tensor, and the step.
#pragma once
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <map>
#include <random>

#include "parallel/state/checkpoint.hpp"

namespace chorale::test {

struct KnownTensor {
  std::string name;
  Shape shape;
  DType dtype;
};

inline const std::vector<KnownTensor>& known_tensors() {
  static const std::vector<KnownTensor> all = {{"block.0.mlp.up.weight", {6, 10}, DType::f32},
                                               {"moment1/block.0.mlp.up.weight", {6, 10}, DType::f64},
                                               {"norm.gain", {17}, DType::bf16},
                                               {"head.weight", {31, 4}, DType::f16},
                                               {"cube", {3, 4, 5}, DType::i32},
                                               {"steps", {}, DType::i64},
                                               {"nothing", {0, 3}, DType::u8}};
  return all;
}

// Returns 8 bytes. An element of n bytes uses the first n of these bytes.
inline std::uint64_t known_bits(std::size_t tensor, std::int64_t index, std::int64_t step) {
  return (tensor + 1) * 0x9E3779B97F4A7C15u ^ static_cast<std::uint64_t>(index) * 0xC2B2AE3D27D4EB4Fu ^
         static_cast<std::uint64_t>(step) << 40 ^ static_cast<std::uint64_t>(step * 77);
}

// Divides a tensor into parts at random. A shard is a range of indices along one dim. A part is a range of elements of a
// shard.
inline std::vector<Part> random_cover(const Shape& shape, std::mt19937& chance) {
  const auto cuts = [&](std::int64_t length) {
    std::vector<std::int64_t> at = {0, length};
    for (int n = std::uniform_int_distribution<int>(0, 3)(chance); n > 0; --n)
      at.push_back(std::uniform_int_distribution<std::int64_t>(0, length)(chance));
    std::sort(at.begin(), at.end());
    return at;
  };
  std::vector<Part> parts;
  const int dim = shape.empty() ? -1 : std::uniform_int_distribution<int>(-1, static_cast<int>(shape.size()) - 1)(chance);
  const auto shards = dim < 0 ? std::vector<std::int64_t>{0, 1} : cuts(shape[static_cast<std::size_t>(dim)]);
  for (std::size_t i = 0; i + 1 < shards.size(); ++i) {
    const Shard shard = dim < 0 ? Shard{} : Shard{dim, shards[i], shards[i + 1] - shards[i]};
    const auto ranges = cuts(resolved({shard}, shape).count);
    for (std::size_t j = 0; j + 1 < ranges.size(); ++j) parts.push_back({shard, ranges[j], ranges[j + 1] - ranges[j]});
  }
  return parts;
}

// For each element of the part, returns the element's index in the full tensor. This reference implementation tests every
// element of the full tensor.
inline std::vector<std::int64_t> places(const Part& part, const Shape& shape) {
  std::vector<std::int64_t> all;
  for (std::int64_t index = 0; index < elements_of(shape); ++index) {
    if (part.shard.dim >= 0) {
      std::int64_t inner = 1;
      for (std::size_t d = static_cast<std::size_t>(part.shard.dim) + 1; d < shape.size(); ++d) inner *= shape[d];
      const std::int64_t at = index / inner % shape[static_cast<std::size_t>(part.shard.dim)];
      if (at < part.shard.first || at >= part.shard.first + part.shard.length) continue;
    }
    all.push_back(index);
  }
  const auto first = all.begin() + part.first;
  return {first, part.count < 0 ? all.end() : first + part.count};
}

// The parts of tensors that one rank holds, and the bytes of these parts.
struct KnownState {
  std::vector<StateTensor> tensors;
  std::vector<std::vector<std::byte>> bytes;

  void add(std::size_t which, const Part& part) {
    const KnownTensor& known = known_tensors()[which];
    const std::int64_t count = resolved(part, known.shape).count;
    bytes.emplace_back(static_cast<std::size_t>(count * size_of(known.dtype)));
    tensors.push_back({known.name, known.shape, part, {bytes.back().data(), count, known.dtype}});
  }

  // fill() sets all elements to their values at a step. wrong() counts the elements that differ from these values.
  void fill(std::int64_t step) { go(step, true); }
  std::int64_t wrong(std::int64_t step) { return go(step, false); }

 private:
  std::int64_t go(std::int64_t step, bool write) {
    std::int64_t differ = 0;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      std::size_t which = 0;
      while (known_tensors()[which].name != tensors[t].name) ++which;
      const auto size = static_cast<std::size_t>(size_of(tensors[t].data.dtype));
      std::byte* place = bytes[t].data();
      for (const std::int64_t index : places(tensors[t].part, tensors[t].shape)) {
        const std::uint64_t bits = known_bits(which, index, step);
        differ += std::memcmp(place, &bits, size) != 0;
        if (write) std::memcpy(place, &bits, size);
        place += size;
      }
    }
    return differ;
  }
};

inline KnownState whole_state() {
  KnownState state;
  for (std::size_t t = 0; t < known_tensors().size(); ++t) state.add(t, {});
  return state;
}

// Exchanges strings between ranks that run as threads.
class Exchange {
 public:
  explicit Exchange(int size, std::vector<int> hosts = {})
      : hosts_(std::move(hosts)), texts_(static_cast<std::size_t>(size)), sent_(texts_.size()), meet_(size) {}
  Peers peers(int rank) {
    return {.rank = rank,
            .size = static_cast<int>(texts_.size()),
            .exchange =
                [this, rank](std::string mine) {
                  texts_[static_cast<std::size_t>(rank)] = std::move(mine);
                  meet_.arrive_and_wait();
                  std::vector<std::string> all = texts_;
                  meet_.arrive_and_wait();
                  return all;
                },
            .swap = [this, rank](const auto& sent, const auto& received) { swap(rank, sent, received); },
            .hosts = hosts_};
  }
  std::int64_t crossing() const { return crossing_; }  // bytes of all messages so far

 private:
  void swap(int rank, const std::vector<ByteMessage>& sent, const std::vector<ByteMessage>& received) {
    sent_[static_cast<std::size_t>(rank)] = sent;
    meet_.arrive_and_wait();
    std::map<int, std::size_t> next;  // for each sender, the index of its next message in its list
    for (const ByteMessage& message : received) {
      const std::vector<ByteMessage>& theirs = sent_.at(static_cast<std::size_t>(message.rank));
      std::size_t& at = next[message.rank];
      while (theirs.at(at).rank != rank) ++at;
      if (theirs[at].bytes.size() != message.bytes.size()) throw std::logic_error("the sizes of a message differ");
      std::ranges::copy(theirs[at++].bytes, message.bytes.begin());
      crossing_ += static_cast<std::int64_t>(message.bytes.size());
    }
    meet_.arrive_and_wait();
  }

  std::vector<int> hosts_;
  std::vector<std::string> texts_;
  std::vector<std::vector<ByteMessage>> sent_;
  std::atomic<std::int64_t> crossing_ = 0;
  std::barrier<> meet_;
};

inline Metadata known_metadata(std::int64_t step) {
  Metadata metadata;
  metadata.step = step;
  metadata.cursor = 8 * step;
  metadata.seed = 0xfedcba9876543210;
  metadata.loss_scale = 0.1;
  metadata.good_steps = 3;
  metadata.patience = 1;
  metadata.updates = step - 2;
  metadata.model.layers = 2;
  metadata.model.epsilon = 1e-6;
  metadata.blocks = {{"tokens", 64}};
  metadata.config = "lr = 0.1\nname = \"é\"\n";
  return metadata;
}

inline Log quiet() { return Log({.level = "off"}); }

inline void save_step(const std::filesystem::path& folder, std::int64_t step) {
  KnownState state = whole_state();
  state.fill(step);
  save_checkpoint(folder, known_metadata(step), state.tensors);
}

// Loads a checkpoint, checks every element and returns the step. Throws if no checkpoint can be loaded.
inline std::int64_t step_loaded(const std::filesystem::path& path) {
  Log log = quiet();
  const Checkpoint checkpoint = Checkpoint::open(path, log);
  KnownState state = whole_state();
  checkpoint.read(state.tensors);
  const std::int64_t step = checkpoint.metadata().step;
  if (state.wrong(step) != 0) throw std::logic_error("the loaded state differs from the saved one");
  return step;
}

}  // namespace chorale::test
