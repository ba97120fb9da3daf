// Tests the table of layouts that `chorale plan` prints. The costs in each row must equal the costs in a complete plan of
// the layout. If a row names a rival, the rival's costs must all be at most as high.
#include "experiments/plan/candidates.hpp"

#include <algorithm>
#include <set>

#include "tests/catch.hpp"

namespace chorale::plan {
namespace {

TrainingOptions options_on(const Layout& layout) {
  TrainingOptions options{.shape = {ModelFamily::gpt2, 4, 4, 4, 32, 64, 16, 61}};
  options.batch.global = 48;
  options.batch.micro = layout.stages() > 1 ? 1 : 48 / layout.replicas() / 4;  // 4 micro-batches, or up to 48 in a pipeline
  return options;
}

std::vector<Layout> layouts_of(std::int64_t world) {
  return legal_layouts({options_on({}).shape, world, 48}, options_on, [](const Layout&) { return true; });
}

Candidate candidate(const char* word, std::int64_t memory, std::int64_t sent, double bubble) {
  return {.layout = parse_layout(word, 0), .memory_bytes = memory, .sent_bytes = sent, .bubble = bubble};
}

const Candidate& row_of(const Choices& choices, const std::string& word) {
  return *std::ranges::find_if(choices.rows, [&](const Candidate& c) { return to_string(c.layout) == word; });
}

TEST_CASE("the cost of a long step is extrapolated exactly from two short steps") {
  for (const Layout& layout : layouts_of(4)) {
    const PlanRequest request{.options = options_on(layout), .layout = layout};
    std::int64_t memory = 0, sent = 0;
    for (std::int64_t stage = 0; stage < layout.stages(); ++stage) {
      const RankPlan whole = plan_rank(request, fullest_rank(request.options, layout, stage));
      memory = std::max(memory, whole.peak_bytes);
      std::int64_t bytes = 0;
      for (const auto& [axis, account] : whole.axes)
        for (const Account::Entry& entry : account.entries) bytes += entry.bytes;
      sent = std::max(sent, bytes);
    }
    const Candidate told = weigh(request);
    INFO(to_string(layout));
    CHECK(told.memory_bytes == memory);
    CHECK(told.sent_bytes == sent);
  }
}

TEST_CASE("the legal layouts cover every strategy and every schedule, each layout once") {
  std::set<std::string> words;
  const std::vector<Layout> layouts = layouts_of(4);
  for (const Layout& layout : layouts) words.insert(to_string(layout));
  CHECK(words.size() == layouts.size());
  for (const char* word : {"dp4", "dp4.z1", "dp4.z2", "dp4.z3", "dp1.tp4", "dp1.tp4.sp", "dp2.tp2.z3.sp", "dp1.pp4",
                           "dp1.pp4.gpipe", "dp2.pp2.zb-h1", "dp2.pp2.v2.interleaved", "dp1.tp2.pp2.sp"}) {
    INFO(word);
    CHECK(words.contains(word));
  }
  for (const char* word :
       {"dp1.tp4.z1", "dp1.tp4.z3", "dp1.pp4.v2.interleaved"}) {  // no replicas for ZeRO, or more chunks than layers
    INFO(word);
    CHECK(!words.contains(word));
  }
}

TEST_CASE("layouts are sorted, and each names a layout that is at least as good") {
  const Choices choices =
      in_order({candidate("dp4", 100, 50, 0), candidate("dp4.z1", 60, 50, 0), candidate("tp4", 40, 90, 0),
                candidate("dp1.pp4", 30, 10, 0.3), candidate("dp1.pp4.gpipe", 45, 10, 0.3),
                candidate("dp1.pp4.zb-h1", 30, 10, 0.2), candidate("dp2.tp2", 200, 5, 0)},
               150);
  std::vector<std::string> order;
  for (const Candidate& c : choices.rows) order.push_back(to_string(c.layout));
  CHECK(order == std::vector<std::string>{"dp4.z1", "dp0.tp4", "dp1.pp4.zb-h1", "dp4", "dp2.tp2"});
  CHECK(choices.schedules_left_out == 2);
  CHECK(row_of(choices, "dp4").rival == "dp4.z1");
  CHECK(row_of(choices, "dp4.z1").rival.empty());
  CHECK(!row_of(choices, "dp2.tp2").fits);
}

TEST_CASE("if two layouts cost the same, only one names the other as its rival") {
  const Choices choices = in_order({candidate("dp2", 10, 10, 0), candidate("dp1.tp2", 10, 10, 0)}, 0);
  CHECK(choices.rows[0].rival.empty());
  CHECK(choices.rows[1].rival == to_string(choices.rows[0].layout));
}

TEST_CASE("layouts with uncounted bytes are not compared") {
  const Choices choices = in_order({candidate("dp2", 10, -1, 0), candidate("dp1.tp2", 20, -1, 0)}, 0);
  for (const Candidate& c : choices.rows) CHECK(c.rival.empty());
}

TEST_CASE("times within the error of the fastest that fits are marked, and --rows counts in every format") {
  std::vector<Candidate> all{candidate("dp4", 100, 50, 0), candidate("dp1.tp4", 50, 90, 0),
                             candidate("dp1.pp4", 30, 10, 0.3), candidate("dp2.tp2", 200, 5, 0)};
  const double seconds[] = {1.0, 1.05, 1.5, 0.5};  // in seconds; the last layout does not fit into memory
  for (std::size_t i = 0; i < all.size(); ++i) all[i].seconds = seconds[i];
  const Choices choices = in_order(all, 150);
  const std::string text = table_of(choices, "text", 0, "", {.error = 0.1, .origin = "toy.toml"});
  CHECK_THAT(text, says("~ 1.1 s"));
  CHECK(std::ranges::count(text, '~') == 2);  // one in the row of the second layout, one in the line that explains the mark
  CHECK_THAT(text, says("~: within 10 % of the fastest that fits"));
  CHECK_THAT(table_of(choices, "text", 0, "", {}), !says("~"));
  const std::string csv = table_of(choices, "csv", 2, "", {.error = 0.1});
  CHECK(std::ranges::count(csv, '\n') == 3);
  CHECK_THAT(csv, says("dp4,100,0,50,0,1,yes,\n"));
}

TEST_CASE("on real layouts, a rival is at least as good") {
  std::vector<Candidate> all;
  for (const Layout& layout : layouts_of(8)) all.push_back(weigh({.options = options_on(layout), .layout = layout}));
  const std::size_t many = all.size();
  const Choices choices = in_order(std::move(all), 0);
  CHECK(choices.rows.size() + static_cast<std::size_t>(choices.schedules_left_out) == many);
  for (const Candidate& c : choices.rows) {
    INFO(to_string(c.layout) << " and " << c.rival);
    if (!c.rival.empty()) {
      const Candidate& rival = row_of(choices, c.rival);
      CHECK((rival.no_worse(c) && rival.rival.empty()));
    }
    for (const Candidate& other : choices.rows)
      if (c.rival.empty() && other.no_worse(c)) CHECK(c.no_worse(other));  // of two equal layouts, only one names the other
  }
}

}  // namespace
}  // namespace chorale::plan
