// The table of a search: the executed ways, fastest first. "~" marks ways within the planner's error of the fastest, and "!"
// marks ways that need almost all memory.
//
//   layout     micro-batch  recompute  s/step  tokens/s  / fastest  …  memory/rank  of 74.5 GiB  …  loses by
//   dp8.tp8              2  none        4.123    254300       1.00  …     53.1 GiB       71.3 %
#pragma once
#include "experiments/plan/document.hpp"
#include "experiments/plan/search.hpp"
#include "experiments/plan/time_on_system.hpp"
#include "experiments/plan/wording.hpp"

namespace chorale::plan {

std::vector<std::string> columns_of_ways(const SearchRequest& request, const Wording& as);
std::vector<std::string> row_of_way(const Found& way, const Found& fastest, const SearchRequest& request, const Wording& as);
void add_ways(Document& out, const SearchResult& result, const SearchRequest& request, const Wording& as);

double share(const Shares& shares, const std::string& name);  // time of this kind of work in seconds; 0 if it is missing

}  // namespace chorale::plan
