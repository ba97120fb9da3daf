// Router rules shared by the tests on the host and on a device.
#pragma once
#include <fmt/format.h>

#include <vector>

#include "src/math/routing.hpp"
#include "tests/math/checks.hpp"

namespace chorale {

inline constexpr RouterScore scores[] = {RouterScore::softmax_of_chosen, RouterScore::softmax, RouterScore::sigmoid};

struct Case {
  RoutingRule rule;
  std::int64_t tokens, leaf;
};

struct CaseSizes {
  std::int64_t experts, chosen, groups, groups_chosen, sequence, tokens, leaf;
};

inline Case case_of(RouterScore score, double capacity, const CaseSizes& s) {
  return {{.experts = s.experts,
           .chosen = s.chosen,
           .score = score,
           .scale = 2.5,
           .groups = s.groups,
           .groups_chosen = s.groups_chosen,
           .capacity = capacity,
           .sequence = s.sequence,
           .balance = 0.3,
           .z = 0.02},
          s.tokens,
          s.leaf};
}

// Rules with every score function, with and without groups, and with capacities that drop many, few and no tokens.
inline std::vector<Case> cases() {
  std::vector<Case> all;
  for (const RouterScore score : scores)
    for (const auto& [experts, chosen, groups, groups_chosen] :
         {std::tuple{1, 1, 1, 1}, {4, 1, 1, 1}, {5, 5, 1, 1}, {7, 2, 1, 1}, {8, 3, 4, 2}, {9, 2, 3, 3}, {12, 4, 6, 2}})
      for (const double capacity : {0.0, 0.5, 1.0, 1.3})
        for (const auto& [sequence, tokens, leaf] : {std::tuple{1, 1, 1}, {7, 21, 7}, {12, 24, 4}})
          all.push_back(case_of(score, capacity, {experts, chosen, groups, groups_chosen, sequence, tokens, leaf}));
  return all;
}

// Returns the rule, extended by the biases and the token counts of the previous step. Before the first step, the counts are
// zeros.
inline RoutingRule balanced(RoutingRule rule, bool before_first_step) {
  static Desk desk;
  rule.bias = desk.random({rule.experts}, DType::f32, 1);
  rule.counts = desk.empty({rule.experts}, DType::i64);
  for (std::int64_t e = 0; e < rule.experts; ++e)
    rule.counts.values<std::int64_t>()[static_cast<std::size_t>(e)] = before_first_step ? 0 : e * e % 7;
  return rule;
}

// Returns all given cases. Some of the cases are added again with balancing by the counts of earlier steps.
inline std::vector<Case> with_balance(std::vector<Case> all) {
  for (std::size_t i = 0, plain = all.size(); i < plain; ++i) {
    if (i % 5 == 0) all.push_back({balanced(all[i].rule, false), all[i].tokens, all[i].leaf});
    if (i % 35 == 0) all.push_back({balanced(all[i].rule, true), all[i].tokens, all[i].leaf});
  }
  return all;
}

inline std::vector<std::int32_t> integers(const Tensor& tensor) {
  const auto values = tensor.values<std::int32_t>();
  return {values.begin(), values.end()};
}

inline std::string text_of(const Case& c) {
  return fmt::format("score {}, {} of {} experts, {} of {} groups, capacity {}, {} tokens in sequences of {}{}",
                     static_cast<int>(c.rule.score), c.rule.chosen, c.rule.experts, c.rule.groups_chosen, c.rule.groups,
                     c.rule.capacity, c.tokens, c.rule.sequence, c.rule.bias ? ", balanced by steps" : "");
}

}  // namespace chorale
