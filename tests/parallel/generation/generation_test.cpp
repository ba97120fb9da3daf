// Tests generation. Reading tokens one by one must give nearly the same logits as reading all tokens in one pass. When the
// context is full, generation continues from the newer half. In exact numerics, every layout generates the same text.
#include "parallel/generation/generation.hpp"

#include "parallel/state/hugging_face.hpp"
#include "src/base/error.hpp"
#include "src/memory/on_host.hpp"
#include "tests/catch.hpp"
#include "tests/layers/small_model.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

NamedTensors weights_of(const Model& model) {
  NamedTensors all;
  for (const ParameterPointer& p : model.parameters()) all.emplace(p->name, p->value);
  return all;
}

// Fills a rank's parts of the parameters from the complete tensors. Ranks on threads call this function, so it must not use
// Catch2 macros, which are not thread-safe.
void take_weights(const std::vector<Owned>& parts, const NamedTensors& weights) {
  for (const Owned& owned : parts) {
    const Parameter& p = *owned.parameter;
    const Slice whole = weights.at(p.name).slice();
    require(whole.dtype == owned.value.dtype() && whole.count == elements_of(p.shape), "{} has another type or size",
            p.name);
    on_host(owned.value.slice(), Use::write, [&](const Slice& here) {
      copy_common(p.shape, size_of(whole.dtype), resolved({}, p.shape),
                  {static_cast<std::byte*>(whole.data), static_cast<std::size_t>(whole.bytes())},
                  resolved({.shard = p.shard, .first = owned.first, .count = owned.count}, p.shape),
                  {static_cast<std::byte*>(here.data), static_cast<std::size_t>(here.bytes())});
    });
  }
}

struct Reader {
  SmallModel m;
  Generator generator;

  explicit Reader(const ModelShape& shape) : m(shape, DType::f32, 1), generator({.shape = shape}, Mesh(), m.desk.memory) {
    take_weights(generator.weights(), weights_of(m.model));
  }
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

TEST_CASE("tokens read one by one or in pieces have nearly the logits of a training pass") {
  ModelShape forced = small_moe();
  forced.experts.routing = ForcedRouting::zipf;  // a token's position in the complete text determines its experts
  for (const ModelShape& shape : {small_gpt(), small_llama(), small_qwen(), small_moe(), forced}) {
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
        INFO(name_of(shape.family) << ", pieces of " << piece << ", from token " << first);
        CHECK(norm(difference(seen, expected)) <= 1e-4 * std::sqrt(static_cast<double>(seen.size())));
      }
    }
  }
}

TEST_CASE("generation drops no token of an expert, whatever the capacity") {
  Reader without(small_moe()), with(with_drops(small_moe()));
  for (const std::vector<std::int32_t>& piece : {std::vector<std::int32_t>{5, 7, 1, 9, 30, 2}, {4}, {8, 8, 8}})
    CHECK(without.generator.read(piece) == with.generator.read(piece));
}

TEST_CASE("a full context continues from its newer half, and each token is drawn with its own random number") {
  for (const ModelShape& shape : {small_gpt(), small_llama()})
    for (const std::size_t length : {3, 12, 20}) {  // shorter than, equal to and longer than the context of 12
      Reader whole(shape), again(shape);
      std::vector<std::int32_t> all;
      for (std::size_t i = 0; i < length; ++i) all.push_back(static_cast<std::int32_t>(7 * i % 61));
      const Sampling sampling{.temperature = 1, .seed = 3};
      const auto tokens = whole.generator.generate(all, 30, sampling, [](std::int32_t) { return true; });
      std::vector<std::int32_t> context(all.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(length, 12)),
                                        all.end());
      for (std::uint64_t i = 0; i < 30; ++i) {
        if (context.size() > 12) context.erase(context.begin(), context.end() - 6);
        INFO(name_of(shape.family) << ", a prompt of " << length << ", token " << i);
        REQUIRE(tokens[i] == sample(again.afresh(context), sampling, i));
        context.push_back(tokens[i]);
      }
    }
}

TEST_CASE("generation ends on request, and refuses tokens outside the vocabulary") {
  Reader r(small_gpt());
  int seen = 0;
  CHECK(r.generator.generate({1}, 50, {}, [&](std::int32_t) { return ++seen < 4; }).size() == 4);
  CHECK_THROWS_AS(r.afresh({61}), Error);
  CHECK_THROWS_AS(r.afresh({-1}), Error);
}

// The tokens of one generated text, and the logits of a prompt that is read afterwards in several parts.
struct Said {
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<float>> logits;
};

Said said_by(Generator& generator, std::int64_t text) {
  Said said;
  const auto number = static_cast<std::int32_t>(text);
  said.tokens = generator.generate({3, number}, 20, {.temperature = 1, .seed = static_cast<std::uint64_t>(text)},
                                   [](std::int32_t) { return true; });
  generator.forget();
  for (const std::vector<std::int32_t>& piece : {std::vector{5, 7, number, 2, 8, 4, 6, 11}, {9}, {60, 1}})
    said.logits.push_back(generator.read(piece));
  return said;
}

// Returns the first difference between two texts, or "". Logits are allowed to differ by `tolerance`. Only the last stage
// has logits.
std::string difference(const Said& one, const Said& many, const Mesh& mesh, double tolerance) {
  if (tolerance == 0 && one.tokens != many.tokens) return "the tokens differ";
  for (std::size_t i = 0; i < one.logits.size(); ++i) {
    if (mesh.pipeline().rank() + 1 < mesh.pipeline().size() && many.logits[i].empty()) continue;
    if (one.logits[i].size() != many.logits[i].size()) return fmt::format("piece {}: {} logits", i, many.logits[i].size());
    for (std::size_t j = 0; j < one.logits[i].size(); ++j)
      if (std::abs(one.logits[i][j] - many.logits[i][j]) > tolerance)
        return fmt::format("piece {}: logit {} is {}, expected {}", i, j, many.logits[i][j], one.logits[i][j]);
  }
  return "";
}

std::vector<ModelShape> shapes_of_layouts() {
  ModelShape gpt = test::small_shape(), llama = gpt;
  llama.family = ModelFamily::llama;
  llama.tied = false;
  return {gpt, llama, test::small_moe(0.75)};
}

// The layouts of `world` ranks that can generate text with this model. Each replica generates a different text.
std::vector<Layout> generating_layouts(const ModelShape& shape, int world) {
  std::vector<Layout> all = all_layouts({shape, world, 12, 1});
  std::erase_if(all, [](const Layout& l) { return l.sequence; });
  if (world == 4)
    for (const char* word : {"dp2.pp2.v2.z3", "dp1.tp2.pp2.v2"}) all.push_back(parse_layout(word, world));
  return all;
}

std::vector<Layout> covering_layouts(const ModelShape& shape, std::initializer_list<int> worlds) {
  return test::covering(worlds, [&](int world) { return generating_layouts(shape, world); });
}

// A model, and eight texts that a one-rank run generates. On a layout, replica i must generate text i.
struct Spoken {
  GenerationOptions options;
  SmallModel m;
  std::vector<Said> texts;

  Spoken(const ModelShape& shape, const char* numerics)
      : options{.shape = shape, .numerics = named<NumericsKind>(numerics)}, m(shape, DType::f32, 1) {
    Generator alone(options, Mesh(), m.desk.memory);
    take_weights(alone.weights(), weights_of(m.model));
    for (std::int64_t text = 0; text < 8; ++text) texts.push_back(said_by(alone, text));
  }

  std::string difference_on(Mesh mesh, Memory& memory) const {
    Generator generator(options, std::move(mesh), memory);
    take_weights(generator.weights(), weights_of(m.model));
    const int replica = generator.mesh().data().rank();
    return difference(texts[static_cast<std::size_t>(replica)], said_by(generator, replica), generator.mesh(),
                      options.numerics == NumericsKind::exact ? 0 : 1e-5);
  }
};

TEST_CASE("every layout gives the same tokens and logits in exact numerics, and nearly the same logits in fast",
          "[threads]") {
  test::Sample third(3);
  for (const ModelShape& shape : shapes_of_layouts()) {
    const Spoken exact(shape, "exact"), fast(shape, "fast");
    for (const Layout& layout : covering_layouts(shape, {1, 2, 3, 4, 6, 8}))
      for (const Spoken* spoken : {&exact, &fast}) {
        if (!third.takes()) continue;
        INFO(name_of(shape.family) << ", " << name_of(spoken->options.numerics) << ", " << to_string(layout));
        CHECK(spoken->texts[0].tokens != spoken->texts[1].tokens);
        CHECK(spoken->texts[0].logits != spoken->texts[1].logits);
        CHECK(test::on_thread_mesh(
                  layout, [&](Mesh mesh, Memory& memory) { return spoken->difference_on(std::move(mesh), memory); }) == "");
      }
  }
}

TEST_CASE("in exact numerics, ranks in separate processes generate the same tokens on every layout and backend",
          "[spmd][hosts]") {
  const ModelShape shape = test::small_moe();
  const Spoken spoken(shape, "exact");
  SystemClock clock;
  test::Sample fifth(5);
  for (const Backend& backend : all_backends()) {
    if (!test::joins_all(backend)) continue;
    const Worlds worlds(open_world(backend.name, test::world(), clock));
    for (const Layout& layout : covering_layouts(shape, {test::world().size()})) {
      if (!fifth.takes()) continue;
      INFO(to_string(layout) << " on " << backend.name);
      REQUIRE_ALL(spoken.difference_on(Mesh(layout, worlds, {}), worlds.memory()) == "");
    }
  }
}

TEST_CASE("replicas whose texts have other lengths, and replicas without a text, take part until the last text ends",
          "[threads]") {
  Spoken spoken(test::small_moe(), "exact");
  const auto said_on = [&](Generator& generator, std::int64_t text) {
    const std::vector<std::int32_t> prompt(static_cast<std::size_t>(1 + 4 * text), static_cast<std::int32_t>(text));
    const std::int64_t count = text % 3 == 2 ? 0 : 9 + 5 * text, stops_after = text % 2 == 0 ? 4 : 1000;
    std::int64_t seen = 0;
    return generator.generate(prompt, count, {.seed = static_cast<std::uint64_t>(text)},
                              [&](std::int32_t) { return ++seen < stops_after; });
  };
  Generator alone(spoken.options, Mesh(), spoken.m.desk.memory);
  take_weights(alone.weights(), weights_of(spoken.m.model));
  std::vector<std::vector<std::int32_t>> expected;
  for (std::int64_t text = 0; text < 6; ++text) expected.push_back(said_on(alone, text));
  CHECK((expected[0].size() == 4 && expected[1].size() == 14 && expected[2].empty() && expected[3].size() == 24));
  for (const char* word : {"dp4.ep2", "dp3.ep3", "dp6.ep6", "dp3.z3", "dp4.ep2.z3", "dp3.pp2.ep3", "dp2.tp2.ep2",
                           "dp2.rep2.z3.hpz", "dp2.pp2.z3", "dp2.tp2.z3", "dp2.cp2.z3"}) {
    INFO(word);
    CHECK(test::on_thread_mesh(parse_layout(word, 0), [&](Mesh mesh, Memory& memory) -> std::string {
            Generator generator(spoken.options, std::move(mesh), memory);
            take_weights(generator.weights(), weights_of(spoken.m.model));
            const int replica = generator.mesh().data().rank();
            const auto said = said_on(generator, replica);
            return said == expected[static_cast<std::size_t>(replica)] ? "" : fmt::format("text {} differs", replica);
          }) == "");
  }
}

TEST_CASE("under ZeRO-3, the ranks that shard hold one model together; otherwise each replica holds its own", "[threads]") {
  const GenerationOptions options{.shape = test::small_shape()};
  for (const auto& [word, models] :
       {std::pair{"dp4.z3", 1}, {"dp4.z2", 4}, {"dp2.rep2.z3", 2}, {"dp2.rep2.z2", 4}, {"dp2.rep2.z3.hpz", 1}}) {
    const Layout layout = parse_layout(word, 4);
    INFO(word);
    CHECK(test::on_thread_mesh(layout, [&, models = models](Mesh mesh, Memory& memory) -> std::string {
            const Generator generator(options, std::move(mesh), memory);
            std::int64_t here = 0, all = 0;
            for (const Owned& owned : generator.weights()) here += owned.count;
            for (const std::string& held : generator.mesh().data().exchange(std::to_string(here))) all += std::stoll(held);
            return all == models * options.shape.parameters() ? "" : fmt::format("all ranks hold {} elements", all);
          }) == "");
  }
}

TEST_CASE("the peak memory of a generation equals the plan", "[threads]") {
  for (const ModelShape& shape : shapes_of_layouts())
    for (const Layout& layout : covering_layouts(shape, {1, 2, 4})) {
      if (layout.expert_ranks() > 1)
        continue;  // the plan assumes balanced routing, but these weights route all tokens to
                   // one expert
      const GenerationOptions options{.shape = shape};
      const std::int64_t planned = planned_bytes(options, layout, 5);
      INFO(name_of(shape.family) << ", " << to_string(layout) << ", " << planned << " bytes planned");
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
              Generator generator(options, std::move(mesh), memory);
              for (const Owned& owned : generator.weights()) clear(owned.value);
              generator.read({1, 2, 3, 4, 5});
              std::int64_t most = 0;
              for (const std::string& held :
                   generator.mesh().world().exchange(std::to_string(generator.ledger().total_peak())))
                most = std::max<std::int64_t>(most, std::stoll(held));
              return most == planned ? "" : fmt::format("the largest peak of a rank was {} bytes", most);
            }) == "");
    }
}

TEST_CASE("generation refuses sequence parallelism, because tokens come one by one") {
  CHECK_THROWS_WITH(require_generates(parse_layout("dp2.tp2.sp", 4)), says("generate on dp2.tp2: it loads"));
}

}  // namespace
}  // namespace chorale
