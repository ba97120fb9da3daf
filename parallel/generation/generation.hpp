// Tokens from a model on any layout, one after the other. Keys and values of what has been read are kept, so that a new token costs one row;
// when the model's context is full, its newer half is read again and the older forgotten.
//
//   stage 0   token ─ embedding ─ blocks ─▶ ┐                 each rank keeps the keys and values of its heads and its blocks
//   stage 1           ┌ blocks ─ head ◀─────┘ ─ logits ─ draw     all shards of the last stage draw alike, and tell their pipelines
//             ▲───────┴───────────── token ──────────────┘
//
// Replicas generate texts of their own. Under ZeRO-3 they fetch one another's parts of each unit, so all must generate as many tokens.
// Sent for a token, in elements: 2 rows of h an all-reduce and layer, one row a boundary, the logits once (all over tp), the token.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "parallel/generation/sampling.hpp"
#include "parallel/stage.hpp"
#include "src/math/device_kernels.hpp"

namespace chorale {

struct GenerationOptions {
  ModelShape shape;
  DType compute = DType::f32;
  std::string numerics = "fast";
  int threads = 1;
  const DevicePlugin* device = nullptr;  // null: the host

  Queue queue() const { return queue_on(device, threads); }
};

void require_generates(const Layout& layout);  // a usage error for sequence parallelism
// The most bytes that a rank with the last shard will hold, in the stage that holds most, if it reads `tokens` at once. The same code computes it on
// phantom memory.
std::int64_t planned_bytes(const GenerationOptions& options, const Layout& layout, std::int64_t tokens);

class Generator {
 public:
  Generator(const GenerationOptions& options, Mesh mesh, Memory& memory);
  Generator(const Generator&) = delete;

  const Mesh& mesh() const { return mesh_; }
  const Ledger& ledger() const { return ledger_; }
  std::vector<Owned> weights() const { return buckets_->owned(); }  // to be written to, once: their values are undefined

  // `on_token` sees each token as it comes, and ends the generation by returning false: on all ranks alike, as all see the same.
  std::vector<std::int32_t> generate(const std::vector<std::int32_t>& prompt, std::int64_t count, const Sampling& sampling,
                                     const std::function<bool(std::int32_t)>& on_token);
  // Logits of the token after `tokens`, which follow what was read before. Of the last stage; none elsewhere.
  std::vector<float> read(const std::vector<std::int32_t>& tokens);
  void forget() { cache_.past = 0; }

 private:
  Tensor through_stages(Tensor x, Context& context);
  std::vector<float> gathered(const Tensor& columns);
  std::int32_t told_by_last_stage(std::int32_t token);

  GenerationOptions options_;
  Mesh mesh_;
  Ledger ledger_;
  Allocator memory_;
  std::unique_ptr<Numerics> numerics_;
  std::unique_ptr<ShardBoundary> boundary_;
  Stage stage_;
  std::unique_ptr<Buckets> buckets_;
  KeyValueCache cache_;
};

}  // namespace chorale
