// Collective. Rank 0 gets the rows of all ranks, in rank order; the other ranks get an empty list. Rows are sent as JSON.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "src/base/mpi.hpp"

namespace chorale {

template <class Row>
std::vector<Row> gather_json(const mpi::Runtime& runtime, const Row& mine) {
  std::vector<Row> rows;
  for (const std::string& text : mpi::gather(runtime.world(), nlohmann::json(mine).dump()))
    rows.push_back(nlohmann::json::parse(text).template get<Row>());
  return rows;
}

}  // namespace chorale
