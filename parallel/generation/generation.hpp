// Generates tokens one after the other, with a model on any layout without sequence parallelism. Keys and values of earlier
// tokens are cached, so the model processes only one row per new token. When the context is full, the cache is emptied and
// the newer half of the tokens is read again.
//
//   stage 0   token ─ embedding ─ blocks ─▶ ┐                 each rank caches the keys and values of its heads and blocks
//   stage 1           ┌ blocks ─ head ◀─────┘ ─ logits ─ draw     all shards of the last stage draw the same token
//             ▲───────┴───────────── token ──────────────┘        and send it to their pipelines
//
// Each replica generates its own text. With ZeRO-3, all replicas together gather the weights of each unit. With ep, the
// replicas exchange rows of experts. So a replica must take part in these calls even after its text has ended. Such a
// replica reads one token repeatedly until the texts of all replicas have ended. To detect this end, the replicas add up a
// flag after each token.
//
// With cp, the ranks divide the prompt if it has enough tokens. Each rank gathers all keys and values, so every rank has the
// complete cache. Tokens after the prompt are not divided: every rank computes each of them.
//
// Traffic per token: 2 all-reduces of h elements per layer, h elements per stage boundary, one all-reduce of the logits, and
// the token itself. With ep, a rank also sends up to 2·k·h elements per expert layer.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "layers/router_balance.hpp"
#include "parallel/generation/sampling.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/step/stage.hpp"
#include "src/math/device_kernels.hpp"

namespace chorale {

struct GenerationOptions {
  ModelShape shape;
  DType compute = DType::f32;
  NumericsKind numerics = NumericsKind::fast;
  int threads = 1;
  const DevicePlugin* device = nullptr;  // the GPU; null if the host computes

  Queue queue() const { return queue_on(device, threads); }
};

void require_generates(const Layout& layout);  // throws a usage error for sequence parallelism
// Returns the peak memory of a pass that reads `tokens` tokens, in bytes, as the maximum over ranks. For each stage and
// context rank, only the last tensor-parallel rank is planned. Runs the code of Generator on phantom memory, which allocates
// nothing.
std::int64_t planned_bytes(const GenerationOptions& options, const Layout& layout, std::int64_t tokens);

class Generator {
 public:
  Generator(const GenerationOptions& options, Mesh mesh, Memory& memory);
  Generator(const Generator&) = delete;

  const Mesh& mesh() const { return mesh_; }
  const Ledger& ledger() const { return ledger_; }
  std::vector<Owned> weights() const;  // the uninitialized weights of this rank, which the caller must load

  // Calls `on_token` for each token as soon as it is drawn. If `on_token` returns false, generation ends. All ranks of a
  // replica pass the same token to `on_token`, which must return the same value on all ranks of the replica. All replicas
  // call `generate` together; a replica that has no text to generate passes a count of 0.
  std::vector<std::int32_t> generate(const std::vector<std::int32_t>& prompt, std::int64_t count, const Sampling& sampling,
                                     const std::function<bool(std::int32_t)>& on_token);
  // Appends `tokens` to the tokens that were read before, and processes them. The last stage returns the logits of the next
  // token, and other stages return an empty vector.
  std::vector<float> read(const std::vector<std::int32_t>& tokens);
  void forget() { cache_.past = 0; }

 private:
  Tensor filled(const std::vector<std::int64_t>& tokens, const std::function<std::int32_t(std::int64_t)>& value);
  std::optional<TokenCut> cut_of(std::int64_t tokens) const;
  Tensor through_stages(Tensor x, Context& context);
  bool goes_on_anywhere(bool goes_on_here);
  std::vector<float> gathered(const Tensor& columns);
  std::int32_t told_by_last_stage(std::int32_t token);

  GenerationOptions options_;
  Mesh mesh_;
  Ledger ledger_;
  Allocator memory_;
  std::unique_ptr<Numerics> numerics_;
  std::unique_ptr<ShardBoundary> boundary_;
  std::unique_ptr<ExpertExchange> exchange_;
  Stage stage_;
  std::unique_ptr<Buckets> buckets_;
  RouterBalance balance_;
  KeyValueCache cache_;
};

}  // namespace chorale
