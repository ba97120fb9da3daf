#include "parallel/generation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"

namespace chorale {

Generator::Generator(Model& model, Allocator& memory, Numerics& numerics, DType compute, const Queue& queue)
    : model_(model), memory_(memory), numerics_(numerics), compute_(compute), queue_(queue) {
  const ModelShape& s = model.shape;
  cache_.capacity = s.sequence;
  const auto half = [&] {
    return Tensor(memory, {1, s.sequence, s.groups, s.head_width()}, compute, Category::activations);
  };
  for (std::int64_t i = 0; i < s.layers; ++i) cache_.layers.push_back({half(), half()});
}

std::vector<float> Generator::read(const std::vector<std::int32_t>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  require(count > 0 && cache_.past + count <= cache_.capacity, "{} tokens after {} do not fit a context of {}", count,
          cache_.past, cache_.capacity);
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= model_.shape.vocabulary)
      usage_error("a token is not in the model's vocabulary",
                  fmt::format("id {} of a vocabulary of {}", token, model_.shape.vocabulary),
                  "use the tokenizer of the training data");
  Context context{.queue = queue_, .memory = memory_, .numerics = numerics_, .compute = compute_};
  context.tokens = {.first_sample = 0, .sequence = cache_.capacity, .first_token = cache_.past, .tokens = count};
  context.stream = context.tokens;
  context.training = false;
  context.cache = &cache_;
  Tensor x = context.typed({count}, DType::i32, Category::data);
  std::copy(tokens.begin(), tokens.end(), x.values<std::int32_t>().begin());
  auto& layers = model_.layers.layers();
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) x = layers[i]->forward(x, context);
  cache_.past += count;
  const Tensor logits = model_.head->logits(x.narrow(count - 1, 1), context);
  std::vector<float> all;
  visit_floating(compute_, [&]<class T>(Type<T>) {
    for (const T& value : logits.values<T>()) all.push_back(static_cast<float>(value));
  });
  return all;
}

std::vector<std::int32_t> Generator::generate(const std::vector<std::int32_t>& prompt, std::int64_t count,
                                              const Sampling& sampling, const std::function<bool(std::int32_t)>& on_token) {
  require(!prompt.empty(), "a model goes on from something: the prompt is empty");
  std::vector<std::int32_t> all = prompt, next = prompt;
  const auto newest = [&](std::int64_t tokens) { return std::vector(all.end() - tokens, all.end()); };
  if (static_cast<std::int64_t>(next.size()) > cache_.capacity) next = newest(cache_.capacity);
  forget();
  for (std::int64_t i = 0; i < count; ++i) {
    if (cache_.past + static_cast<std::int64_t>(next.size()) > cache_.capacity) {
      forget();
      next = newest(std::max<std::int64_t>(cache_.capacity / 2, 1));
    }
    const std::vector<float> logits = read(next);
    const std::int32_t token = sample(logits, sampling, static_cast<std::uint64_t>(i));
    all.push_back(token);
    next = {token};
    if (!on_token(token)) break;
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()};
}

}  // namespace chorale
