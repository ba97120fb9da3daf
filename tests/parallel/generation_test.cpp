// Generation: reading token by token is reading at once, and a context that is full goes on from its newer half.
#include "parallel/generation.hpp"

#include "tests/catch.hpp"
#include "tests/layers/small_model.hpp"

namespace chorale {
namespace {

struct Reader {
  SmallModel m;
  Generator generator;

  explicit Reader(const ModelShape& shape)
      : m(shape, DType::f32, 1), generator(m.model, m.desk.allocator, *m.numerics, DType::f32, {1}) {}
  std::vector<float> afresh(const std::vector<std::int32_t>& tokens) {
    generator.forget();
    return generator.read(tokens);
  }
};

std::vector<double> difference(const std::vector<float>& a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  std::vector<double> off;
  for (std::size_t i = 0; i < a.size(); ++i) off.push_back(a[i] - b[i]);
  return off;
}

TEST_CASE("tokens read one by one or some at once have the logits that training gives them") {
  for (const ModelShape& shape : {small_gpt(), small_llama()}) {
    Reader r(shape);
    Context c = r.m.context();
    c.training = false;
    Tensor x = r.m.ids;
    auto& layers = r.m.model.layers.layers();
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) x = layers[i]->forward(x, c);
    const Tensor logits = r.m.model.head->logits(x, c);
    const auto ids = r.m.ids.values<std::int32_t>();
    for (const std::size_t piece : {1, 4, 12}) {
      r.generator.forget();
      for (std::size_t first = 0; first < ids.size(); first += piece) {
        const auto seen = r.generator.read({ids.begin() + first, ids.begin() + first + piece});
        const auto expected = logits.narrow(static_cast<std::int64_t>(first + piece) - 1, 1).values<float>();
        INFO(shape.family << ", pieces of " << piece << ", from token " << first);
        CHECK(norm(difference(seen, expected)) <= 1e-4 * std::sqrt(static_cast<double>(seen.size())));
      }
    }
  }
}

TEST_CASE("a context that is full goes on from its newer half, and each token is drawn by its own number") {
  for (const ModelShape& shape : {small_gpt(), small_llama()})
    for (const std::size_t length : {3, 12, 20}) {  // within the context of 12, all of it, beyond it
      Reader whole(shape), again(shape);
      std::vector<std::int32_t> all;
      for (std::size_t i = 0; i < length; ++i) all.push_back(static_cast<std::int32_t>(7 * i % 61));
      const Sampling sampling{.temperature = 1, .seed = 3};
      const auto tokens = whole.generator.generate(all, 30, sampling, [](std::int32_t) { return true; });
      std::vector<std::int32_t> context(all.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(length, 12)),
                                        all.end());
      for (std::uint64_t i = 0; i < 30; ++i) {
        if (context.size() > 12) context.erase(context.begin(), context.end() - 6);
        INFO(shape.family << ", a prompt of " << length << ", token " << i);
        REQUIRE(tokens[i] == sample(again.afresh(context), sampling, i));
        context.push_back(tokens[i]);
      }
    }
}

TEST_CASE("generation ends when it is told to, and knows the vocabulary") {
  Reader r(small_gpt());
  int seen = 0;
  CHECK(r.generator.generate({1}, 50, {}, [&](std::int32_t) { return ++seen < 4; }).size() == 4);
  CHECK_THROWS_AS(r.afresh({61}), Error);
  CHECK_THROWS_AS(r.afresh({-1}), Error);
}

}  // namespace
}  // namespace chorale
