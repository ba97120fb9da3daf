// Tests enumerations with names (include/chorale/named.hpp), as user programs and the option parser use them.
#include <chorale/named.hpp>

#include <optional>
#include <type_traits>

#include <chorale/training.hpp>
#include "src/base/options.hpp"
#include "src/base/settings.hpp"
#include "tests/refused.hpp"

using namespace chorale;

namespace {

enum class Metal : std::uint8_t { tin, gold };
constexpr auto names_of(Metal) { return Names{"metal", "tin", "gold"}; }

struct Ore {
  const char* name;
};
const std::vector<Ore> ores{{"cassiterite"}, {"calaverite"}};

struct Choices {
  Metal metal = Metal::tin;
  std::optional<Metal> second;
  const Ore *ore = &ores[1], *other = nullptr;
  std::optional<std::int64_t> depth, width;
  std::uint64_t seed = 7;
  bool lamps = true;
  Options options{"chorale test"};

  Choices() {
    options.add("metal", metal, "a metal").also("or", "gold");
    options.add("second", "auto", second, "another metal");
    options.add("ore", ores, ore, "an ore");
    options.add("other", ores, other, "another ore");
    options.add("depth", "0", depth, "a depth; 0: as deep as the mine").range(0, 9);
    options.add("width", "auto", width, "a width").range(1, 9);
    options.add("seed", seed, "a seed").range(0, 9e18);
    options.only_where(
        "light", [this] { return lamps ? "" : "the lamps are off"; },
        [this] { options.add("shade", "auto", width_of_shade, "a shade").only_with(options.option("metal"), Metal::gold); });
    options.add_no("no-lamps", lamps, "work without lamps");
  }
  std::optional<std::int64_t> width_of_shade;
  void resolve(const std::vector<std::string>& words) { chorale::resolve(options, words, {}, {}, {}); }
  std::string text(const char* name) const { return options.find(name)->text; }
};

std::string refused_choice(const std::vector<std::string>& words) {
  return test::refused([&] { Choices().resolve(words); });
}

// These fields accept no strings, so a misspelled name in a user's program is a compile-time error.
template <class Field>
concept TakesWords = std::is_assignable_v<Field&, const char*> || std::is_assignable_v<Field&, std::string>;
static_assert(!TakesWords<decltype(OptimizerOptions::kind)> && !TakesWords<decltype(TrainingOptions::numerics)> &&
              !TakesWords<decltype(ReplicaOptions::reducer)> && !TakesWords<decltype(LearningRate::decay)> &&
              !TakesWords<decltype(ModelShape::family)> && !TakesWords<decltype(ContextOptions::scheme)>);

}  // namespace

TEST_CASE("a value has a name, and a name a value") {
  CHECK(name_of(Metal::gold) == std::string("gold"));
  CHECK(named<Metal>("gold") == Metal::gold);
  CHECK(all_names<Metal>() == std::vector<std::string>{"tin", "gold"});
  CHECK(test::refused([] { named<OptimizerKind>("adamm"); }) ==
        "unknown optimizer \"adamm\"\n  the optimizers are adamw, sgd\n  did you mean \"adamw\"?");
}

TEST_CASE("an option sets an enumeration or a row of a table, and an open value has a word") {
  Choices f;
  CHECK((f.text("metal") == "tin" && f.text("second") == "auto" && f.text("ore") == "calaverite"));
  CHECK((f.text("other") == "auto" && f.text("depth") == "0" && f.text("width") == "auto" && f.text("no-lamps") == "false"));
  f.resolve({"--metal", "or", "--second=tin", "--ore=cassiterite", "--other=calaverite", "--depth", "3", "--width=4",
             "--seed=9000000000000000000", "--no-lamps"});
  CHECK((f.metal == Metal::gold && f.second == Metal::tin && f.ore == &ores[0] && f.other == &ores[1]));
  CHECK((f.depth == 3 && f.width == 4 && f.seed == 9'000'000'000'000'000'000u && !f.lamps));
  CHECK((f.text("metal") == "gold" && f.text("other") == "calaverite" && f.text("no-lamps") == "true"));
  f.resolve({"--second=auto", "--other=auto", "--depth=00", "--width=auto", "--no-lamps=no"});
  CHECK((!f.second && !f.other && !f.depth && !f.width && f.lamps && f.text("depth") == "0"));
}

TEST_CASE("a wrong word of an option names the right ones") {
  CHECK_THAT(refused_choice({"--metal", "silver"}),
             says("\"silver\" is not a value of metal") && says("metal takes one of tin, gold"));
  CHECK_THAT(refused_choice({"--second", "silver"}), says("second takes one of auto, tin, gold"));
  CHECK_THAT(refused_choice({"--ore", "auto"}), says("ore takes one of cassiterite, calaverite"));
  CHECK_THAT(refused_choice({"--other", "slate"}), says("other takes one of auto, cassiterite, calaverite"));
  CHECK_THAT(refused_choice({"--depth", "1.5"}), says("depth takes a whole number") && !says("or 0"));
  CHECK_THAT(refused_choice({"--width", "0"}), says("width takes 1 to 9, or auto"));
  CHECK_THAT(refused_choice({"--shade", "3", "--metal", "gold", "--no-lamps"}), says("the lamps are off"));
  CHECK_THAT(refused_choice({"--shade", "3"}), says("it works only with metal gold and light"));
}
