#include "parallel/layout/layout.hpp"

#include <algorithm>
#include <set>

#include "tests/refused.hpp"

using namespace chorale;

namespace {

Layout layout_of(const std::array<std::int64_t, 3>& sizes, Layout rest = {}) {
  rest["dp"] = sizes[0];
  rest["tp"] = sizes[1];
  rest["pp"] = sizes[2];
  return rest;
}

LayoutLimits limits_of(const std::string& preset, std::int64_t world) {
  for (const ModelPreset& p : model_presets())
    if (p.name == preset) return {.shape = p.shape, .world = world, .global_batch = p.batch};
  throw std::logic_error("no preset " + preset);
}

std::string unfit(const std::string& word, const LayoutLimits& limits) {
  return test::refused([&] { require_fits(parse_layout(word, 0), limits); });
}
std::string unread(const std::string& word, std::int64_t world = 8) {
  return test::refused([&] { parse_layout(word, world); });
}

}  // namespace

TEST_CASE("a layout is read from its word, in any order of its parts") {
  CHECK(parse_layout("dp2.tp2.pp2.z1.sp", 8) == layout_of({2, 2, 2}, {.zero = 1, .sequence = true}));
  CHECK(parse_layout("sp.z1.pp2.tp2", 8) == parse_layout("dp2.tp2.pp2.z1.sp", 8));
  CHECK(parse_layout("", 8) == layout_of({8, 1, 1}));
  CHECK(parse_layout("tp2", 0) == layout_of({0, 2, 1}));
  CHECK(parse_layout("pp2.zb-h1", 2) == layout_of({1, 1, 2}, {.schedule = find_pipeline_schedule("zb-h1")}));
  CHECK(parse_layout("pp2.v3", 2) == layout_of({1, 1, 2}, {.schedule = find_pipeline_schedule("interleaved"), .chunks = 3}));
  CHECK(parse_layout("pp2.interleaved", 2) ==
        layout_of({1, 1, 2}, {.schedule = find_pipeline_schedule("interleaved"), .chunks = 2}));
  CHECK(parse_layout("gpipe.v3.pp2", 2) == layout_of({1, 1, 2}, {.schedule = find_pipeline_schedule("gpipe"), .chunks = 3}));
}

TEST_CASE("the word of a layout omits defaults") {
  CHECK(to_string(Layout{}) == "dp1");
  CHECK(to_string(layout_of({2, 2, 2}, {.zero = 1, .sequence = true})) == "dp2.tp2.pp2.z1.sp");
  CHECK(to_string(layout_of({1, 1, 4}, {.schedule = find_pipeline_schedule("gpipe")})) == "dp1.pp4.gpipe");
}

TEST_CASE("a layout written as a word and read again is the same") {
  for (const std::int64_t size : {1, 3})
    for (int zero = 0; zero < 4; ++zero)
      for (const bool sequence : {false, true})
        for (const PipelineAlgorithm& schedule : all_pipeline_schedules())
          for (const std::int64_t chunks : {1, 2}) {
            const Layout layout = layout_of({size, 2, 3 - size + 1},
                                            {.zero = zero, .sequence = sequence, .schedule = &schedule, .chunks = chunks});
            INFO(to_string(layout));
            CHECK(parse_layout(to_string(layout), layout.ranks()) == layout);
          }
}

TEST_CASE("a word that is not a layout is refused, and the error suggests the nearest valid part") {
  CHECK_THAT(unread("dp4.t2"),
             says("\"t2\" is not a part of a layout\n  the layout given is \"dp4.t2\"\n") && says("did you mean tp2?"));
  CHECK_THAT(unread("1fb1"), says("did you mean 1f1b?"));
  CHECK_THAT(unread("dp2.tp"), says("\"tp\" lacks its number") && says("did you mean tp2?"));
  CHECK_THAT(unread("dp0"), says("dp takes 1 to"));
  CHECK_THAT(unread("z4"), says("z takes 0 to 3"));
  CHECK_THAT(unread("dp99999999999999999999"), says("out of range"));
  CHECK_THAT(unread("dp2.tp2.dp2"), says("\"dp2\" is given twice"));
  CHECK_THAT(unread("gpipe.1f1b"), says("a second schedule"));
  CHECK_THAT(unread("dp2..tp2"), says("between two dots"));
  CHECK_THAT(unread("tp3"), says("data_parallel = world 8 / (tensor 3)") && says("try dp2.tp4, dp4.tp2"));
}

TEST_CASE("a layout with more ranks than there can be is refused, however its sizes are multiplied") {
  const std::string huge = "tp1000000.pp1000000.cp1000000.rep1000000.z1";
  CHECK_THAT(unread(huge), says("the layout has more ranks than there can be\n  ") && says("tp 1000000") &&
                               says("take a layout of at most 2147483647 ranks"));
  CHECK_THAT(unread("dp1000000." + huge), says("the layout has more ranks than there can be"));
  CHECK_THAT(unfit("dp1000000." + huge, limits_of("tiny", 8)), says("the layout has more ranks than there can be"));
  CHECK(parse_layout("dp40000.tp8.pp64", 0).ranks() == 40000 * 8 * 64);
}

TEST_CASE("the size of an axis is found by the quantity that the axis divides") {
  Layout layout = parse_layout("dp2.rep3.tp4.pp5.cp6.ep2.z1", 0);
  CHECK(layout.size_dividing(Divides::batch) == 2);
  CHECK(layout.size_dividing(Divides::width) == 4);
  CHECK(layout.size_dividing(Divides::layers) == 5);
  CHECK(layout.size_dividing(Divides::tokens) == 6);
  CHECK(layout.size_dividing(Divides::experts) == 2);
  layout.size_dividing(Divides::tokens) = 1;
  CHECK(layout.context_ranks() == 1);
}

TEST_CASE("a table has at most as many axes as a layout has sizes") {
  AxisTable axes{};
  for (std::size_t row = 0; row < most_axes; ++row)
    axes.add({.name = "a", .noun = "a", .divides = Divides::batch, .depth = 0});
  CHECK_THROWS_WITH(axes.add({.name = "ninth", .noun = "a", .divides = Divides::batch, .depth = 0}),
                    says("no room for ninth"));
}

TEST_CASE("a layout must use exactly the ranks of its world") {
  CHECK_THAT(unfit("dp3.tp2", limits_of("tiny", 8)),
             says("data 3 × tensor 2 = 6 ranks; there are 8") && says("try dp4.tp2, dp2.tp4 or dp2.tp2.cp2"));
  CHECK_THAT(unfit("tp3", limits_of("tiny", 8)), says("world 8 / (tensor 3) is not an integer"));
  CHECK(fits(layout_of({0, 2, 1}), limits_of("tiny", 8)));
}

TEST_CASE("each tensor rank takes whole heads, MLP units and vocabulary blocks") {
  CHECK_THAT(unfit("tp5", limits_of("tiny", 5)),
             says("num-attention-heads 24 is not a multiple of tensor 5") && says("dp1.pp5"));
  CHECK_THAT(unfit("tp8", limits_of("tiny-llama", 8)),
             says("num-query-groups 4 (of num-attention-heads 8) is less than tensor 8") && says("try dp2.tp4"));
  CHECK_THAT(unfit("tp3", limits_of("tiny-llama", 3)), says("num-query-groups 4") && says("not a multiple of tensor 3"));
  LayoutLimits odd = limits_of("tiny", 4);
  odd.shape.ffn = 386;  // 2 units
  CHECK_THAT(unfit("tp4", odd), says("2 units") && says("try dp2.tp2"));
  LayoutLimits few = limits_of("tiny", 4);
  few.shape.vocabulary = 3;
  CHECK_THAT(unfit("tp4", few), says("vocab-size 3 is 3 blocks of 1"));
  few.shape.vocabulary = 4;
  CHECK(fits(layout_of({1, 4, 1}), few));
}

TEST_CASE("expert ranks are replicas that divide the experts") {
  LayoutLimits limits = limits_of("tiny", 8);
  CHECK_THAT(unfit("dp8.ep2", limits), says("num-experts 0, expert 2") && says("try dp8"));
  limits.shape.experts = {.count = 6, .chosen = 2, .ffn = 96};
  CHECK(fits(parse_layout("dp8.ep2", 8), limits));
  CHECK(fits(parse_layout("ep2.tp4", 8), limits));
  CHECK_THAT(unfit("dp8.ep4", limits), says("num-experts 6 is not a multiple of expert 4") && says("try dp8.ep2"));
  CHECK_THAT(unfit("dp4.tp2.ep8", limits), says("data 4 is not a multiple of expert 8") && says("try dp4.tp2.ep2"));
  CHECK_THAT(unread("tp2.ep3"), says("data 4 is not a multiple of expert 3") && says("try dp4.tp2.ep2"));

  const Layout layout = parse_layout("ep2.dp4.z1", 4);
  CHECK(to_string(layout) == "dp4.ep2.z1");
  CHECK(layout["edp"] == 2);
  const Layout undivided = parse_layout("dp4", 4);
  CHECK(undivided["edp"] == 4);
  Layout changed = layout;
  CHECK_THROWS(changed["edp"] = 4);  // edp cannot be set, because its size follows from dp and ep
  CHECK_THAT(unread("dp4.edp2", 4), says("is not a part of a layout"));
  limits.world = 4;
  std::int64_t divided = 0;
  for (const Layout& each : all_layouts(limits)) {
    INFO(to_string(each));
    CHECK(parse_layout(to_string(each), 4) == each);
    CHECK((each["ep"] == 1 || each["ep"] == 2));
    divided += each["ep"] > 1 && each["cp"] == 1;
  }
  // dp4.ep2, dp2.tp2.ep2 with and without sp, dp2.pp2.ep2, each with ZeRO 0 to 3. Also dp2.rep2.ep2 with ZeRO 1 to 3.
  CHECK(divided == 4 + 2 * 4 + 4 + 3);
}

TEST_CASE("rep repeats the ranks among which ZeRO shards") {
  const Layout layout = parse_layout("rep2.z3", 8);
  CHECK(to_string(layout) == "dp4.rep2.z3");
  CHECK((layout.replicas() == 8 && layout.zero_ranks() == 4 && layout.repeats() == 2));
  CHECK(layout.outwards_in() == AxisOrder{"rep", "dp"});
  const Layout context = parse_layout("dp2.rep2.cp2.z3", 8);
  CHECK((context.replicas() == 4 && context.zero_ranks() == 4));
  CHECK_THAT(unread("rep3.z3"), says("data_parallel = world 8 / (repeat 3)") && says("try dp2.rep4.z3, dp4.rep2.z3"));
  CHECK_THAT(
      unfit("dp4.rep2", limits_of("tiny", 8)),
      says("without ZeRO there are no shards to repeat\n  dp4.rep2: repeat 2, zero 0\n  try --zero 1, 2 or 3, or dp8"));
  LayoutLimits experts = limits_of("tiny", 8);
  experts.shape.experts = {.count = 8, .chosen = 2, .ffn = 96};
  CHECK(fits(parse_layout("dp4.rep2.ep4.z1", 8), experts));
  CHECK_THAT(unfit("dp2.rep4.ep4.z1", experts), says("data 2 is not a multiple of expert 4") && says("try dp"));
  LayoutLimits large = limits_of("tiny", 8);
  large.micro_batch = 2;
  CHECK_THAT(unfit("dp4.rep2.z1", large), says("data_parallel 8 = 16 (data_parallel = world 8)"));

  const Layout hpz = parse_layout("dp4.rep2.z3.hpz", 8);
  CHECK(to_string(hpz) == "dp4.rep2.z3.hpz");
  CHECK((hpz.hpz && hpz.zero_ranks() == 8 && hpz != parse_layout("dp4.rep2.z3", 8)));
  CHECK_THAT(unfit("dp8.z3.hpz", limits_of("tiny", 8)), says("with one group of replicas") &&
                                                            says("dp8.z3.hpz: hpz, repeat 1") &&
                                                            says("try --hpz 1, 2 or 4, or dp8.z3, "));
  CHECK_THAT(unfit("dp4.rep2.z2.hpz", limits_of("tiny", 8)), says("hpz, zero 2") && says("try --zero 3, or dp4.rep2.z2"));
  CHECK_THAT(unread("dp8.hpz3"), says("is not a part of a layout") && says("z0 to z3, hpz, sp"));

  const Layout all = parse_layout("dp8.z3", 8), both = parse_layout("dp4.cp2.z1", 8);
  CHECK(to_string(with_zero_ranks(all, 4)) == "dp4.rep2.z3");
  CHECK(to_string(with_zero_ranks(with_zero_ranks(all, 4), 2)) == "dp2.rep4.z3");
  CHECK(to_string(with_zero_ranks(all, 1)) == "dp1.rep8.z3");
  CHECK(with_zero_ranks(layout, 8) == all);
  CHECK(to_string(with_zero_ranks(both, 4)) == "dp2.rep2.cp2.z1");
  for (const std::int64_t wrong : {0, 3, 5, 16})
    CHECK_THAT(test::refused([&] { with_zero_ranks(all, wrong); }),
               says("do not divide the replicas") &&
                   says(fmt::format("dp8.z3: shard-size {}, 8 copies of the model", wrong)) &&
                   says("try --shard-size 1, 2, 4 or 8"));
  CHECK_THAT(test::refused([&] { with_zero_ranks(both, 1); }),
             says("2 context ranks in each group") && says("try --shard-size 2, 4 or 8"));
  for (const Layout& each : all_layouts(limits_of("tiny", 8)))
    CHECK((each.repeats() == 1 || (each.zero > 0 && each.zero_ranks() > 1)));
}

TEST_CASE("sequence parallelism divides the tokens of a micro-batch") {
  LayoutLimits limits = limits_of("tiny", 2);
  limits.shape.sequence = 25;
  limits.micro_batch = 3;
  CHECK_THAT(unfit("tp2.sp", limits),
             says("micro-batch-size 3 × seq-length 25 = 75 tokens are not a multiple of tensor 2") &&
                 says("try --micro-batch-size 2, or dp2, dp1.cp2 or dp1.pp2"));
  limits.micro_batch = 0;  // one micro-batch of all 24 sequences
  CHECK(fits(parse_layout("tp2.sp", 2), limits));
  limits.world = 4;
  CHECK_THAT(unfit("tp2.pp2.sp", limits), says("micro-batch-size 1 × seq-length 25"));
  CHECK_THAT(unfit("dp4.sp", limits), says("tensor is 1") && says("try"));
}

TEST_CASE("every stage needs layers, and chunks need a schedule that supports them") {
  CHECK_THAT(unfit("pp16", limits_of("tiny", 16)), says("pipeline 16 × chunks 1 = 16; num-layers is 8") && says("pp8"));
  CHECK_THAT(unfit("pp4.v3", limits_of("tiny", 4)), says("pipeline 4 × chunks 3 = 12"));
  CHECK_THAT(unfit("pp4.v2.gpipe", limits_of("tiny", 4)),
             says("the schedule gpipe does not fit") && says("try dp1.pp4, dp2.pp2"));
  CHECK_THAT(unfit("tp4.v2", limits_of("tiny", 4)), says("pipeline 1"));
  CHECK_THAT(unfit("dp2.gpipe", limits_of("tiny", 2)), says("schedule is gpipe, pipeline 1") && says("try dp2, "));
  CHECK(fits(parse_layout("pp4.v2", 4), limits_of("tiny", 4)));
}

TEST_CASE("a batch must consist of whole micro-batches on every replica") {
  LayoutLimits limits = limits_of("tiny", 8);
  limits.micro_batch = 4;
  CHECK_THAT(
      unfit("dp4.tp2", limits),
      says("global-batch-size 24 must be a multiple of micro-batch-size 4 × data_parallel 4 = 16 (data_parallel = world 8 / "
           "(tensor 2))") &&
          says("try --global-batch-size 16 or 32, or --micro-batch-size 3, 2 or 1, or dp2.tp4"));
  limits.micro_batch = 1;
  limits.global_batch = 20;
  CHECK_THAT(unfit("dp2.pp4.v2", limits),
             says("10 micro-batches are not a multiple of 4 stages") && says("try --global-batch-size 16 or 24"));
  limits.world = 32;
  limits.micro_batch = 0;
  limits.global_batch = 3;
  limits.shape.layers = 1;
  limits.shape.heads = limits.shape.groups = 1;
  CHECK_THAT(unfit("dp32", limits), says("try --global-batch-size 32"));
  limits.shape.vocabulary = 1;
  CHECK_THAT(unfit("tp32", limits), says("no layout of 32 ranks fits"));
}

TEST_CASE("a layout word may name the order of its axes") {
  const Layout swapped = parse_layout("dp2.tp2.pp2.tp-dp", 8);
  CHECK(swapped.order == AxisOrder{"tp", "dp"});
  CHECK(swapped.outwards_in() == AxisOrder{"pp", "tp", "dp"});
  CHECK(to_string(swapped) == "dp2.tp2.pp2.pp-tp-dp");
  CHECK(parse_layout(to_string(swapped), 8) == swapped);
  CHECK(parse_layout("tp-pp.pp2.dp2.tp2", 8).outwards_in() == AxisOrder{"tp", "dp", "pp"});  // dp stays in the middle

  const Layout usual = parse_layout("dp2.tp2", 4);
  CHECK(usual.outwards_in() == AxisOrder{"dp", "tp"});
  CHECK(parse_layout("dp2.tp2.dp-tp", 4) == usual);
  CHECK(parse_layout("dp2.tp2.tp-pp", 4).outwards_in() == AxisOrder{"tp", "dp"});
  CHECK(parse_layout("dp2.tp2.tp-dp", 4) != usual);
  CHECK(parse_layout("dp4.tp-dp", 4) == parse_layout("dp4", 4));  // a single axis has only one order
  CHECK(to_string(parse_layout("dp4.tp-dp", 4)) == "dp4");
  CHECK(to_string(parse_layout("pp2.zb-h1", 2)) == "dp1.pp2.zb-h1");  // the hyphen is part of the schedule's name

  CHECK_THAT(unread("dp2.tp2.tp-xp", 4),
             says("no axis is called \"xp\"") && says("dp, rep, tp, pp, cp") && says("innermost: tp-dp"));
  CHECK_THAT(unread("dp2.tp2.tp-dp-tp", 4), says("names tp twice"));
  CHECK_THAT(unread("dp2.tp2.tp-dp.dp-tp", 4), says("second order"));
  CHECK_THAT(unread("pp2.zb-h2", 2), says("zb-h1"));
}

TEST_CASE("all layouts of a world fit, are distinct, and survive writing and parsing") {
  const auto whole_sequences = [](const Layout& layout) { return layout.context_ranks() == 1; };
  std::size_t most = 0;
  for (const char* preset : {"tiny", "tiny-llama"})
    for (std::int64_t world = 1; world <= 8; ++world) {
      const LayoutLimits limits = limits_of(preset, world);
      const std::vector<Layout> all = all_layouts(limits);
      std::set<std::string> words;
      for (const Layout& layout : all) {
        INFO(to_string(layout));
        CHECK(fits(layout, limits));
        CHECK_NOTHROW(require_fits(layout, limits));
        CHECK(parse_layout(to_string(layout), world) == layout);
        CHECK((layout.copies() > 1 || layout.zero == 0 || layout.zero == 3));
        words.insert(to_string(layout));
      }
      CHECK(words.size() == all.size());
      CHECK(words.count(to_string(layout_of({1, 1, world}))) == (world <= limits.shape.layers));
      most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(all, whole_sequences)));
    }
  // 8 ranks train the preset tiny without cp. With 1, 2, 4 or 8 replicas there are 2, 4, 4 or 4 ZeRO stages. The remaining
  // ranks are split into tp and pp, with or without sp if tp > 1. ZeRO 1 to 3 can also shard among 2 of 4 replicas, or among
  // 2 or 4 of 8 replicas.
  CHECK(most == (1 + 2 * 3) * 2 + (1 + 2 * 2) * 4 + (1 + 2) * (4 + 3) + (4 + 2 * 3));
}
