#include "layers/gpt.hpp"

#include <cmath>

#include "layers/layers.hpp"

namespace chorale {
namespace {

class Builder {
 public:
  Builder(const ModelShape& shape, const Sharding& sharding, const Sharding& experts)
      : s_(shape), sharding_(sharding), expert_sharding_(experts) {}

  LayerPointer embedding() { return embedding_layer(s_, site_++, sharding_); }
  std::unique_ptr<Norm> norm(const std::string& name) const {
    return std::make_unique<Norm>(name, s_.llama() ? NormKind::rms : NormKind::layer, s_.width, s_.epsilon);
  }

  LayerPointer block(std::int64_t i) {
    const std::string name = "block." + std::to_string(i);
    auto both = std::make_unique<Sequence>(name);
    both->add(attention(name + ".attention", i));
    both->add(s_.has_experts(i) ? experts(name + ".mlp", i) : mlp(name + ".mlp"));
    return both;
  }

 private:
  LayerPointer linear(const std::string& name, LinearOptions options) const {
    options.sharding = sharding_;
    return linear_layer(name, options);
  }
  // Weights that write to the residual stream have a smaller initial deviation. The stream's variance therefore does not
  // grow with depth (Radford et al. 2019).
  double into_stream() const { return 0.02 / std::sqrt(2.0 * static_cast<double>(s_.layers)); }
  // last: the name of the branch's last linear layer. Residual adds the bias of this layer after the sum over ranks. Empty:
  // no bias.
  LayerPointer branch(const std::string& name, LayerPointer body, const std::string& last) {
    return residual_layer(norm(name + ".norm"), std::move(body),
                          {.bias = s_.llama() || last.empty() ? "" : name + last + ".bias",
                           .width = s_.width,
                           .dropout = s_.dropout,
                           .site = site_++});
  }

  LayerPointer attention(const std::string& name, std::int64_t i) {
    const std::int64_t d = s_.head_width(), queries = s_.queries();
    const Shard cut = sharding_.shard(0, s_.groups, 1);
    const std::int64_t groups = cut.dim < 0 ? s_.groups : cut.length;
    const AttentionOptions core{
        .shape =
            {.groups = groups, .queries = queries, .width = d, .first_head = cut.first * queries, .all_heads = s_.heads},
        .rotary = s_.llama() ? std::optional(Rotary{groups, queries + 2, queries + 1, d, s_.rotary_base}) : std::nullopt,
        .dropout = s_.dropout,
        .site = site_++,
        .cache_slot = static_cast<std::size_t>(i),
        .leaves = Context::leaves_of(s_.sequence).per_sample()};
    auto body = std::make_unique<Sequence>(name);
    body->add(linear(name + ".qkv", {.inputs = s_.width,
                                     .outputs = s_.qkv_columns(),
                                     .cut = LinearOptions::Cut::columns,
                                     .block = (queries + 2) * d,
                                     .bias = !s_.llama()}));
    if (s_.qk_norm)
      body->add(head_norm_layer(
          name, {.groups = groups, .all_groups = s_.groups, .queries = queries, .width = d, .epsilon = s_.epsilon}));
    body->add(attention_layer(name + ".core", core));
    body->add(linear(name + ".out", {.inputs = s_.heads * d,
                                     .outputs = s_.width,
                                     .cut = LinearOptions::Cut::rows,
                                     .block = queries * d,
                                     .deviation = into_stream(),
                                     .after_attention = true}));
    return branch(name, std::move(body), ".out");
  }

  LayerPointer mlp(const std::string& name) { return branch(name, gated(name, s_.ffn, !s_.llama()), ".down"); }

  // Builds the two matrices of an MLP and the activation function between them.
  LayerPointer gated(const std::string& name, std::int64_t ffn, bool bias) const {
    using Kind = ActivationKind;
    const Shard cut = sharding_.shard(0, s_.units_of(ffn), 1);
    const std::int64_t unit = ffn / s_.units_of(ffn), here = cut.dim < 0 ? ffn : cut.length * unit;
    auto body = std::make_unique<Sequence>(name);
    body->add(linear(name + ".up", {.inputs = s_.width,
                                    .outputs = s_.gates() * ffn,
                                    .cut = LinearOptions::Cut::columns,
                                    .block = s_.gates() * unit,
                                    .bias = bias}));
    body->add(activation_layer(name + ".activation", s_.llama() ? Kind::swiglu : Kind::gelu, here, unit));
    body->add(linear(
        name + ".down",
        {.inputs = ffn, .outputs = s_.width, .cut = LinearOptions::Cut::rows, .block = unit, .deviation = into_stream()}));
    return body;
  }

  LayerPointer experts(const std::string& name, std::int64_t i) {
    const std::int64_t ffn = s_.experts.shared_ffn;
    auto body = std::make_unique<Sequence>(name);
    body->add(expert_layer(name, i, s_, sharding_, expert_sharding_, into_stream(),
                           ffn > 0 ? gated(name + ".shared", ffn, false) : nullptr));
    return branch(name, std::move(body), "");
  }

  const ModelShape& s_;
  Sharding sharding_, expert_sharding_;
  std::uint32_t site_ = 0;
};

}  // namespace

Model build_gpt(const ModelShape& shape, Recompute recompute, const Sharding& sharding, const Sharding& experts) {
  shape.check();
  Builder builder(shape, sharding, experts);
  Model model{.shape = shape};
  model.layers.add(builder.embedding());
  const ParameterPointer table = parameters_of(*model.layers.layers()[0])[0];
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    LayerPointer block = builder.block(i);
    if (recompute == Recompute::full) block = recomputing_layer(std::move(block));
    model.layers.add(std::move(block));
  }
  model.layers.add(builder.norm("norm"));
  auto head = std::make_unique<Head>(shape, sharding, shape.tied ? table : nullptr);
  model.head = head.get();
  model.layers.add(std::move(head));
  return model;
}

SumSite site_of(const Parameter& p, const ModelShape& shape, std::int64_t tokens) {
  const std::int64_t leaves = Context::leaves_of(shape.sequence).count(tokens);
  return {.name = p.name + " gradient",
          .sum = p.sum,
          .addends = p.sum == SumOf::weight_gradients ? leaves : tokens * p.uses + (p.tied ? leaves : 0)};
}

void allocate(Model& model, Allocator& memory, const Numerics& numerics, DType compute, std::int64_t tokens) {
  for (const ParameterPointer& p : model.parameters()) {
    p->value = Tensor(memory, p->local_shape(), compute, Category::params);
    p->gradient = Tensor(memory, p->local_shape(), numerics.gradient_type(compute), Category::grads);
    p->site = site_of(*p, model.shape, tokens);
  }
}

double published_activation_bytes(const ModelShape& shape, std::int64_t samples, std::int64_t tensor_ranks,
                                  bool sequence_parallel) {
  const auto s = static_cast<double>(shape.sequence), b = static_cast<double>(samples), h = static_cast<double>(shape.width);
  const auto t = static_cast<double>(tensor_ranks);
  return s * b * h * (10 / (sequence_parallel ? t : 1) + 24 / t + 5 * static_cast<double>(shape.heads) * s / (h * t));
}

}  // namespace chorale
