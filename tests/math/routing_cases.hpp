// Rules of routers that the tests on the host and on a device share.
#pragma once
#include <fmt/format.h>

#include <vector>

#include "src/math/routing.hpp"

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

// All scores, with and without groups, and capacities that drop many, few and no tokens.
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

inline std::string text_of(const Case& c) {
  return fmt::format("score {}, {} of {} experts, {} of {} groups, capacity {}, {} tokens in sequences of {}",
                     static_cast<int>(c.rule.score), c.rule.chosen, c.rule.experts, c.rule.groups_chosen, c.rule.groups,
                     c.rule.capacity, c.tokens, c.rule.sequence);
}

}  // namespace chorale
