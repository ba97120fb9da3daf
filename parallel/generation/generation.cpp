#include "parallel/generation/generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "parallel/context/context.hpp"
#include "parallel/experts/experts.hpp"
#include "parallel/step/tensor.hpp"
#include "src/base/error.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

std::unique_ptr<ShardBoundary> boundary_for(const Mesh& mesh) {
  if (mesh.tensor().size() == 1) return std::make_unique<ShardBoundary>();
  return std::make_unique<TensorParallel>(mesh.tensor());
}

// Generation has neither optimizer states nor gradients, so ZeRO-1 and 2 have nothing to shard.
BucketOptions buckets_for(const GenerationOptions& options, const Mesh& mesh) {
  return {.zero = mesh.layout().zero >= 3 ? 3 : 0, .compute = options.compute, .gradients = false};
}

int owner_of_last(const TokenCut& cut) {
  int owner = 0;
  for (int rank = 0; rank < static_cast<int>(cut.ranks()); ++rank)
    if (const TokenRun& run = cut.runs(rank).back(); run.first + run.count == cut.sequence()) owner = rank;
  return owner;
}

}  // namespace

void require_generates(const Layout& layout) {
  if (!layout.sequence) return;
  Layout without = layout;
  without.sequence = false;
  usage_error("generation does not work with sequence parallelism", fmt::format("the layout is {}", to_string(layout)),
              fmt::format("generate on {}: it loads the same checkpoints", to_string(without)));
}

std::int64_t planned_bytes(const GenerationOptions& options, const Layout& layout, std::int64_t tokens) {
  GenerationOptions on_host = options;  // the plan's tensors have no storage and need no GPU
  on_host.device = nullptr;
  std::int64_t most = 0;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
    for (std::int64_t context = 0; context < layout.context_ranks(); ++context) {
      PhantomMemory nothing;
      const int rank = rank_of_stage(layout, stage, true, context);
      Generator generator(on_host,
                          Mesh::pretended(layout, rank, {{"", "shm"}}, {{"", "ring"}}, std::make_shared<const Selector>()),
                          nothing);
      generator.read(std::vector<std::int32_t>(static_cast<std::size_t>(std::min(tokens, options.shape.sequence))));
      most = std::max(most, generator.ledger().total_peak());
    }
  return most;
}

Generator::Generator(const GenerationOptions& options, Mesh mesh, Memory& memory)
    : options_(options),
      mesh_(std::move(mesh)),
      memory_(memory, ledger_),
      numerics_(numerics_on(options.device, options.numerics)),
      boundary_(boundary_for(mesh_)),
      exchange_(exchange_of(mesh_)),
      stage_(options.shape, Recompute::none, mesh_),
      balance_(options.shape, memory_) {
  require_generates(mesh_.layout());
  buckets_ = std::make_unique<Buckets>(stage_.units(), buckets_for(options, mesh_), mesh_, memory_);
  if (buckets_->options().zero >= 3) stage_.wrap_units(*buckets_);
  cache_.capacity = options.shape.sequence;
}

std::vector<Owned> Generator::weights() const {
  std::vector<Owned> all = buckets_->owned();
  if (const ParameterPointer bias = balance_.bias()) all.push_back({bias, 0, bias->value.count(), bias->value, {}});
  return all;
}

std::vector<float> Generator::read(const std::vector<std::int32_t>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  require(count > 0 && cache_.past + count <= cache_.capacity, "{} tokens after {} do not fit into a context of {}", count,
          cache_.past, cache_.capacity);
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= options_.shape.vocabulary)
      usage_error("a token is not in the model's vocabulary",
                  fmt::format("id {} of a vocabulary of {}", token, options_.shape.vocabulary),
                  "use the tokenizer of the training data");
  Context context{{.queue = options_.queue(), .memory = memory_, .numerics = *numerics_, .compute = options_.compute}};
  context.tokens = {.first_sample = 0, .sequence = cache_.capacity, .first_token = cache_.past, .tokens = count};
  const std::optional<TokenCut> cut = cut_of(count);
  const std::unique_ptr<AttentionScheme> scheme = cut ? gather_context(mesh_.context(), *cut) : nullptr;
  const std::unique_ptr<SequenceRows> sequences = cut ? divided_sequences(mesh_.context(), *cut) : nullptr;
  std::vector<std::int64_t> here(static_cast<std::size_t>(count));  // the tokens of this rank
  std::iota(here.begin(), here.end(), 0);
  if (cut) {
    here = cut->places(mesh_.context().rank());
    context.attention = scheme.get();
    context.sequences = sequences.get();
    context.tokens.tokens = std::ssize(here);
    context.places = filled(here, [&](std::int64_t token) { return static_cast<std::int32_t>(cache_.past + token); });
    context.tokens.places = static_cast<const std::int32_t*>(context.places.slice().data);
  }
  context.stream = context.tokens;
  context.training = false;
  context.boundary = boundary_.get();
  context.exchange = exchange_.get();
  context.balance = &balance_;
  context.cache = &cache_;
  cache_.next = count;
  const Tensor last =
      through_stages(filled(here, [&](std::int64_t token) { return tokens[static_cast<std::size_t>(token)]; }), context);
  cache_.past += count;
  if (!stage_.ends()) return {};
  if (cut) mesh_.context().broadcast(last, owner_of_last(*cut));
  return gathered(last);
}

Tensor Generator::filled(const std::vector<std::int64_t>& tokens, const std::function<std::int32_t(std::int64_t)>& value) {
  const Tensor all(memory_, {std::ssize(tokens)}, DType::i32, Category::data);
  if (!all.phantom())
    with_values<std::int32_t>(all, Use::write, [&](auto here) { std::ranges::transform(tokens, here.begin(), value); });
  return all;
}

// How context-parallel ranks divide the tokens of a pass; nullopt if there are too few tokens to divide.
std::optional<TokenCut> Generator::cut_of(std::int64_t tokens) const {
  const std::int64_t ranks = mesh_.context().size();
  if (ranks == 1 || Context::leaves_of(tokens).per_sample() < ranks) return {};
  return TokenCut(tokens, ranks, ContextOptions{}.cut);
}

// Runs one micro-batch through all chunks of all stages, one after the other.
Tensor Generator::through_stages(Tensor x, Context& context) {
  Axis& stages = mesh_.pipeline();
  const PipelineShape pipeline = pipeline_of(mesh_.layout());
  const Shape message{x.dim(0), options_.shape.width};
  for (std::int64_t chunk = 0; chunk < pipeline.chunks; ++chunk) {
    const std::int64_t part = pipeline.part(stages.rank(), chunk);
    const auto stage_of = [&](std::int64_t other) { return static_cast<int>(pipeline.place(other).stage); };
    if (part > 0 && stage_of(part - 1) != stages.rank()) {
      x = context.tensor(message);
      stages.start_recv(x, stage_of(part - 1)).wait();
    }
    x = stage_.chunks().at(static_cast<std::size_t>(chunk)).forward(x, context);
    if (part + 1 < pipeline.parts() && stage_of(part + 1) != stages.rank()) stages.start_send(x, stage_of(part + 1)).wait();
  }
  return x;
}

// Gathers the logits of the complete vocabulary on all tensor-parallel ranks, so that all of them draw the same token. Each
// rank fills in its own columns. Summing the bit patterns as integers joins the columns without rounding.
std::vector<float> Generator::gathered(const Tensor& columns) {
  const ModelShape& shape = options_.shape;
  const Shard mine = width_sharding(mesh_).shard(0, shape.vocabulary, shape.vocabulary_block());
  const Tensor all(memory_, {shape.vocabulary}, DType::f32, Category::workspace);
  clear(all);
  cast(columns.slice(), all.slice().narrow(mine.first, columns.count()), options_.queue());
  mesh_.tensor().all_reduce(all.as(DType::i32));
  std::vector<float> logits;
  if (all.phantom()) return logits;
  with_values<float>(all, Use::read, [&](auto here) { logits.assign(here.begin(), here.end()); });
  return logits;
}

std::int32_t Generator::told_by_last_stage(std::int32_t token) {
  const Tensor word(memory_, {1}, DType::i32, Category::data);
  with_values<std::int32_t>(word, Use::write, [&](auto here) { here[0] = token; });
  mesh_.pipeline().broadcast(word, static_cast<int>(end_stages(mesh_.layout()).back()));
  with_values<std::int32_t>(word, Use::read, [&](auto here) { token = here[0]; });
  return token;
}

// Whether this rank must continue to make calls: its own text is not complete, or a different replica still needs its
// weights or experts.
bool Generator::goes_on_anywhere(bool goes_on_here) {
  if (buckets_->options().zero < 3 && mesh_.layout().expert_ranks() == 1) return goes_on_here;
  const Tensor going_on(memory_, {1}, DType::i32, Category::data);
  with_values<std::int32_t>(going_on, Use::write, [&](auto here) { here[0] = goes_on_here; });
  mesh_.data().all_reduce(going_on);
  with_values<std::int32_t>(going_on, Use::read, [&](auto here) { goes_on_here = here[0] > 0; });
  return goes_on_here;
}

std::vector<std::int32_t> Generator::generate(const std::vector<std::int32_t>& prompt, std::int64_t count,
                                              const Sampling& sampling, const std::function<bool(std::int32_t)>& on_token) {
  require(!prompt.empty(), "the prompt is empty");
  std::vector<std::int32_t> all = prompt, next = prompt;
  const auto newest = [&](std::int64_t tokens) { return std::vector(all.end() - tokens, all.end()); };
  if (static_cast<std::int64_t>(next.size()) > cache_.capacity) next = newest(cache_.capacity);
  forget();
  bool goes_on = count > 0;
  for (std::int64_t i = 0; goes_on_anywhere(goes_on); ++i) {
    if (!goes_on) {
      forget();
      read({all.back()});
      continue;
    }
    if (cache_.past + static_cast<std::int64_t>(next.size()) > cache_.capacity) {
      forget();
      next = newest(std::max<std::int64_t>(cache_.capacity / 2, 1));
    }
    const std::vector<float> logits = read(next);
    const std::int32_t drawn = logits.empty() ? 0 : sample(logits, sampling, static_cast<std::uint64_t>(i));
    const std::int32_t token = told_by_last_stage(drawn);
    all.push_back(token);
    next = {token};
    goes_on = on_token(token) && i + 1 < count;
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()};
}

}  // namespace chorale
