#include <chorale/model.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "src/base/error.hpp"
#include "src/math/routing.hpp"

namespace chorale {

ModelShape ModelShape::completed() const {
  ModelShape shape = *this;
  if (ffn == 0) shape.ffn = 4 * width;
  if (groups == 0) shape.groups = heads;
  if (experts.count > 0 && experts.ffn == 0) shape.experts.ffn = shape.ffn;
  return shape;
}

std::int64_t ModelShape::block_parameters(std::int64_t block, bool active) const {
  const std::int64_t h = width, attention = h * qkv_columns() + heads * head_width() * h;
  const std::int64_t norms = (llama() ? 2 * h : 4 * h) + (qk_norm ? 2 * head_width() : 0),
                     biases = llama() ? 0 : qkv_columns() + h;
  const std::int64_t column = (gates() + 1) * h;  // number of elements in an MLP's two matrices per output column of the
                                                  // activation function
  if (!has_experts(block)) return attention + norms + biases + column * ffn + (llama() ? 0 : ffn + h);
  const std::int64_t each = active ? experts.chosen : experts.count;
  return attention + norms + biases + column * (each * experts.ffn + experts.shared_ffn) + h * experts.count;
}

std::int64_t ModelShape::count_parameters(bool active) const {
  std::int64_t sum = (llama() ? width : 2 * width) + (tied ? 1 : 2) * vocabulary * width + (llama() ? 0 : sequence * width);
  for (std::int64_t block = 0; block < layers; ++block) sum += block_parameters(block, active);
  return sum;
}

double ModelShape::flops_per_token(std::int64_t block) const {
  return 6.0 * static_cast<double>(block_parameters(block, true) + sequence * heads * head_width());
}

double ModelShape::flops_per_token() const {
  const std::int64_t positions = llama() ? 0 : sequence * width, looked_up = tied ? 0 : vocabulary * width;
  return 6.0 * static_cast<double>(active_parameters() - positions - looked_up) +
         6.0 * static_cast<double>(layers * sequence * heads * head_width());
}

// Returns the nearest valid number of heads for this width, or 0. Prefers an even number, which two tensor ranks can share.
std::int64_t heads_that_fit(const ModelShape& s) {
  std::int64_t best = 0;
  const auto badness = [&](std::int64_t heads) { return std::pair{heads % 2, std::abs(heads - s.heads)}; };
  for (std::int64_t heads = 1; heads <= s.width; ++heads) {
    if (s.width % heads != 0 || (s.groups != s.heads && heads % s.groups != 0)) continue;
    if (s.llama() && s.width / heads % 2 != 0) continue;
    if (best == 0 || badness(heads) < badness(best)) best = heads;
  }
  return best;
}

RoutingRule rule_of(const ModelShape& shape) {
  const Experts& e = shape.experts;
  return {.experts = e.count,
          .chosen = e.chosen,
          .score = e.score == ScoreFunction::sigmoid ? RouterScore::sigmoid
                   : e.before_choice                 ? RouterScore::softmax
                                                     : RouterScore::softmax_of_chosen,
          .scale = e.scale,
          .groups = e.groups,
          .groups_chosen = e.chosen_groups,
          .capacity = e.capacity,
          .sequence = shape.sequence,
          .balance = e.balance,
          .z = e.z};
}

namespace {

// Errors name the options, because users set options, not fields.
void check_experts(const ModelShape& shape) {
  const Experts& e = shape.experts;
  if (e.count == 0) return;
  for (const auto& [name, value, least] : {std::tuple{"num-experts", e.count, std::int64_t{1}},
                                           {"moe-ffn-hidden-size", e.ffn, std::int64_t{1}},
                                           {"moe-shared-expert-intermediate-size", e.shared_ffn, std::int64_t{0}},
                                           {"expert-interval", e.every, std::int64_t{1}}})
    if (value < least)
      usage_error("a size of the experts is too small", fmt::format("{} is {}", name, value),
                  fmt::format("make it {} or more", least));
  if (e.every > shape.layers)
    usage_error("no block has experts", fmt::format("expert-interval {} is more than num-layers {}", e.every, shape.layers),
                "use --expert-interval 1, or --num-experts 0");
  if (e.before_choice && e.score != ScoreFunction::softmax)
    usage_error("only softmax can come before the choice", fmt::format("moe-router-score-function is {}", name_of(e.score)),
                "leave out --moe-router-pre-softmax");
  if (e.bias && e.score != ScoreFunction::sigmoid)
    usage_error("biases of experts need sigmoid scores", fmt::format("moe-router-score-function is {}", name_of(e.score)),
                "use --moe-router-score-function sigmoid, or leave out --moe-router-enable-expert-bias");
  if (!(e.bias_rate >= 0) || !std::isfinite(e.bias_rate))
    usage_error("biases of experts cannot move by a negative amount", fmt::format("the rate is {}", e.bias_rate),
                "change --moe-router-bias-update-rate");
  rule_of(shape).check();
}

}  // namespace

void ModelShape::check() const {
  const auto refuse = [](std::string what, std::string numbers, std::string fix) {
    usage_error(std::move(what), std::move(numbers), std::move(fix));
  };
  for (const auto& [name, value] : {std::pair{"num-layers", layers},
                                    {"num-attention-heads", heads},
                                    {"num-query-groups", groups},
                                    {"hidden-size", width},
                                    {"ffn-hidden-size", ffn},
                                    {"seq-length", sequence},
                                    {"vocabulary", vocabulary}})
    if (value < 1) refuse("a model's sizes must be positive", fmt::format("{} is {}", name, value), "make it 1 or more");
  if (head < 0)
    refuse("a head's width is negative", fmt::format("kv-channels is {}", head), "use 0 for hidden-size / heads");
  if (head == 0 && width % heads != 0)
    refuse("heads do not divide the width",
           fmt::format("hidden-size {} is not a multiple of num-attention-heads {}", width, heads),
           heads_that_fit(*this) > 0 ? fmt::format("try --num-attention-heads {}", heads_that_fit(*this))
                                     : fmt::format("choose a multiple of {}, such as --hidden-size {}", 2 * heads,
                                                   2 * heads * (width / (2 * heads) + 1)));
  if (heads % groups != 0)
    refuse("groups do not divide the heads",
           fmt::format("num-attention-heads {} is not a multiple of num-query-groups {}", heads, groups),
           "each group of heads shares one key and value: use a divisor of the heads");
  if (llama() && head_width() % 2 != 0)
    refuse("rotary positions need an even head width", fmt::format("the head width is {}", head_width()),
           "choose hidden-size and heads so that hidden-size / heads is even, or an even --kv-channels");
  if (qk_norm && !llama())
    refuse("only the Llama family can normalize queries and keys",
           fmt::format("qk-layernorm is true, family is {}", name_of(family)),
           "use --family llama, or leave out --qk-layernorm");
  if (!(dropout >= 0 && dropout < 1))
    refuse("dropout must be at least 0 and less than 1", fmt::format("dropout is {}", dropout), "use a value such as 0.1");
  check_experts(*this);
}

const std::vector<ModelPreset>& model_presets() {
  static const auto gpt2 = [](std::int64_t layers, std::int64_t heads, std::int64_t width, std::int64_t sequence,
                              std::int64_t vocabulary) {
    return ModelShape{ModelFamily::gpt2, layers, heads, heads, width, 4 * width, sequence, vocabulary};
  };
  static const auto llama = [](std::int64_t layers, std::int64_t heads, std::int64_t groups, std::int64_t width,
                               std::int64_t ffn, std::int64_t sequence, std::int64_t vocabulary) {
    ModelShape s{ModelFamily::llama, layers, heads, groups, width, ffn, sequence, vocabulary};
    s.tied = false;
    return s;
  };
  static const std::vector<ModelPreset> table = [] {
    std::vector<ModelPreset> all{
        {"tiny", "8 layers that fit many layouts, for tests and proofs", gpt2(8, 24, 96, 24, 480), 24},
        {"nano", "12 million parameters: trains in minutes on one core", gpt2(6, 6, 384, 256, 4096), 8},
        {"gpt2", "124 million parameters, as published", gpt2(12, 12, 768, 1024, 50257), 8},
        {"gpt2-medium", "350 million", gpt2(24, 16, 1024, 1024, 50257), 8},
        {"gpt2-large", "774 million", gpt2(36, 20, 1280, 1024, 50257), 8},
        {"gpt2-xl", "1.5 billion", gpt2(48, 25, 1600, 1024, 50257), 8},
        {"gpt3-175b", "175 billion, for planning only", gpt2(96, 96, 12288, 2048, 50257), 1536},
        {"tiny-llama", "tiny as a Llama, with grouped-query attention", llama(4, 8, 4, 96, 256, 24, 480), 24},
        {"nano-llama", "nano as a Llama, with grouped-query attention", llama(6, 6, 2, 384, 1024, 256, 4096), 8},
        {"tiny-moe", "tiny-llama with 4 experts in every second block", llama(4, 8, 4, 96, 256, 24, 480), 24},
        {"nano-moe", "nano-llama with 8 experts, of which a token chooses 2", llama(6, 6, 2, 384, 1024, 256, 4096), 8},
        {"llama-1b", "1.2 billion: the shape of Llama 3.2", llama(16, 32, 8, 2048, 8192, 2048, 128256), 8},
        {"llama-8b", "8 billion: the shape of Llama 3", llama(32, 32, 8, 4096, 14336, 8192, 128256), 8},
        {"llama-70b", "70 billion, for planning only", llama(80, 64, 8, 8192, 28672, 8192, 128256), 1024},
        {"llama-405b", "405 billion, for planning only", llama(126, 128, 8, 16384, 53248, 8192, 128256), 1152},
    };
    for (ModelPreset& preset : all) {
      const std::string name = preset.name;
      if (name == "llama-1b" || name == "llama-8b") {
        preset.shape.rotary_base = 500000;
        preset.shape.tied = name == "llama-1b";
      }
      if (name == "tiny-moe")
        preset.shape.experts = {
            .count = 4, .chosen = 2, .ffn = 64, .shared_ffn = 32, .every = 2, .balance = 0.01, .z = 0.001};
      if (name == "nano-moe") preset.shape.experts = {.count = 8, .chosen = 2, .ffn = 512, .balance = 0.01, .z = 0.001};
    }
    return all;
  }();
  return table;
}

}  // namespace chorale
