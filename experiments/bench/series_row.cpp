#include "experiments/bench/series_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "collectives/backends/backends.hpp"
#include "experiments/common/simulated.hpp"
#include "src/base/text.hpp"

namespace chorale::bench {
namespace {

using Json = nlohmann::ordered_json;

// The first columns of JSON and CSV, in this order.
constexpr const char* first_printed =
    "op backend algorithm chosen chunks ranks hosts dtype redop root count bytes in_place seconds seconds_ci_low "
    "seconds_ci_high seconds_p5 seconds_p95 algbw_bytes_per_s busbw_bytes_per_s wrong predicted_seconds ceiling_seconds "
    "bytes_sent bytes_predicted repetitions launches memory cache oversubscribed";

template <class T>
Json printed(const T& value, const Column& column) {
  if constexpr (requires { value.has_value(); })
    return value ? printed(*value, column) : Json();
  else if constexpr (std::is_enum_v<T>)
    return column.labels.at(static_cast<std::size_t>(value));
  else if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value) ? Json() : column.units == "byte" ? Json(std::llround(value)) : Json(value);
  else
    return value;
}

template <class T>
void read(const Json& json, T& value, const Column& column) {
  if constexpr (requires { value.has_value(); }) {
    if (!json.is_null()) read(json, value.emplace(), column);
  } else if constexpr (std::is_enum_v<T>) {
    const auto label = std::ranges::find(column.labels, json.get<std::string>());
    require(label != column.labels.end(), "{} has no value {}", column.name, json.dump());
    value = static_cast<T>(label - column.labels.begin());
  } else if constexpr (std::is_floating_point_v<T>) {
    value = json.is_null() ? SeriesRow::unknown : json.get<T>();
  } else {
    json.get_to(value);
  }
}

}  // namespace

Names collectives_of_rows() { return {std::begin(collective_names), std::end(collective_names)}; }

Names backends_of_rows() {
  Names names = with_simulated(backend_names());
  names.emplace_back("simulated");  // for rows of a simulated machine, which a root attribute names
  return names;
}

Names redops_of_rows() {
  Names names(std::begin(redop_names), std::end(redop_names));
  names.emplace_back("none");
  return names;
}

std::int64_t wrong_in(const Rows& rows) {
  std::int64_t wrong = 0;
  for (const SeriesRow& row : rows) wrong += row.wrong.value_or(0);
  return wrong;
}

SeriesRow in_five_digits(SeriesRow row) {
  each_column<SeriesRow>([&](const auto& field) {
    if constexpr (std::is_same_v<decltype(field.member), double SeriesRow::*>)
      if (double& value = row.*field.member; std::isfinite(value)) value = std::stod(fmt::format("{:.5g}", value));
  });
  return row;
}

Json as_json(const SeriesRow& row) {
  Json object;
  for (const std::string& name : split(first_printed, ' ')) object[name] = nullptr;
  each_column<SeriesRow>([&](const auto& field) {
    if (!field.printed.empty()) object[field.printed] = printed(row.*field.member, field.column);
  });
  return object;
}

SeriesRow row_from(const Json& object) {
  SeriesRow row;
  each_column<SeriesRow>([&](const auto& field) {
    if (const auto found = object.find(field.printed); found != object.end()) read(*found, row.*field.member, field.column);
  });
  return row;
}

}  // namespace chorale::bench
