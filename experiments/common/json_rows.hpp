// Reads a row of a table (src/record/table.hpp) from a line of metrics.jsonl, which has the values under the names of their
// columns. A number that is absent or null becomes NaN; other absent values keep their defaults.
#pragma once
#include <limits>
#include <nlohmann/json.hpp>

#include "src/record/table.hpp"

namespace chorale {

template <class Row>
Row row_in(const nlohmann::json& line) {
  Row row;
  each_column<Row>([&](const auto& field) {
    auto& value = row.*field.member;
    using Value = std::remove_cvref_t<decltype(value)>;
    const nlohmann::json cell = line.value(field.column.name, nlohmann::json());
    if constexpr (std::is_same_v<Value, std::uint8_t>) {
      if (cell.is_string()) value = label_of(field.column, cell);
    } else if constexpr (std::is_floating_point_v<Value>) {
      value = cell.is_number() ? cell.get<Value>() : std::numeric_limits<Value>::quiet_NaN();
    } else {
      if (cell.is_number()) value = cell.get<Value>();
    }
  });
  return row;
}

}  // namespace chorale
