#include "src/record/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace chorale {
namespace {

using h5::check;
using h5::own;

template <class T>
std::string as_json(T value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return as_json(static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<T>)
    return std::isfinite(value) ? fmt::format("{}", value) : "null";
  else
    return fmt::format("{}", value);
}

std::string as_json(const Column& column, const std::byte* value) {
  return visit(column.dtype, [&]<class T>(Type<T>) {
    T typed;
    std::memcpy(&typed, value, sizeof typed);
    if constexpr (std::is_same_v<T, std::uint8_t>)
      if (typed < column.labels.size()) return '"' + column.labels[typed] + '"';
    return as_json(typed);
  });
}

}  // namespace

std::uint8_t label_of(const Column& column, const std::string& text) {
  auto found = std::ranges::find(column.labels, text);
  if (found == column.labels.end()) found = std::ranges::find(column.labels, text.substr(0, text.find(':')));
  return static_cast<std::uint8_t>(found - column.labels.begin());
}

Table::Table(hid_t file, const TableSpec& spec) : spec_(spec) {
  group_ = h5::make_group(file, spec.group);
  for (const Dimension& dimension : spec.dimensions) write_dimension(group_.get(), dimension);

  const auto is_coordinate = [&](const Column& column) { return column.name == spec.rows; };
  std::vector<Column> columns = spec.columns;
  counts_rows_ = std::none_of(columns.begin(), columns.end(), is_coordinate);
  if (counts_rows_) columns.push_back({.name = spec.rows, .dtype = DType::i64, .units = "1", .about = "row number"});
  for (Column& column : columns) columns_.push_back({.column = std::move(column)});
  for (const bool coordinate : {true, false})  // creates the coordinate first, because other columns are attached to it
    for (Stored& stored : columns_) {
      if (is_coordinate(stored.column) != coordinate) continue;
      stored.dataset = make_variable(file, group_.get(), spec.rows, stored.column);
      const auto space = own<h5::Space>(H5Dget_space(stored.dataset.get()));
      stored.row_shape.resize(stored.column.dimensions.size() + 1);
      check(H5Sget_simple_extent_dims(space.get(), stored.row_shape.data(), nullptr));
      stored.row_shape[0] = 1;
      stored.row_bytes = size_of(stored.column.dtype);
      for (const hsize_t length : stored.row_shape) stored.row_bytes *= static_cast<std::int64_t>(length);
    }
  h5::set_attribute(group_.get(), "committed_rows", std::int64_t{0});
}

void Table::buffer_bytes(std::size_t c, DType dtype, const void* values, std::int64_t bytes) {
  require(c < columns_.size(), "a row for the table {} has more fields than the table has columns ({})", spec_.group,
          columns_.size());
  Stored& stored = columns_[c];
  require(!stored.column.is_text && dtype == stored.column.dtype, "{}/{} stores {}, not {}", spec_.group, stored.column.name,
          name_of(stored.column.dtype), name_of(dtype));
  require(bytes == stored.row_bytes, "a row of {}/{} has {} bytes, not {}", spec_.group, stored.column.name,
          stored.row_bytes, bytes);
  const auto* first = static_cast<const std::byte*>(values);
  stored.buffer.insert(stored.buffer.end(), first, first + bytes);
}

void Table::buffer_text(std::size_t c, const std::string& text) {
  require(c < columns_.size() && columns_[c].column.is_text, "column {} of the table {} does not store texts", c,
          spec_.group);
  columns_[c].texts.push_back(text);
}

void Table::finish_row(std::size_t fields) {
  require(fields + (counts_rows_ ? 1 : 0) == columns_.size(), "a row has {} fields, fewer than the table {} has columns",
          fields, spec_.group);
  if (counts_rows_) buffer(fields, rows());
  ++buffered_rows_;
}

void Table::drop_unfinished_row() {
  for (Stored& stored : columns_) {
    stored.texts.resize(std::min(stored.texts.size(), static_cast<std::size_t>(buffered_rows_)));
    if (!stored.column.is_text) stored.buffer.resize(static_cast<std::size_t>(buffered_rows_ * stored.row_bytes));
  }
}

void Table::write() {
  if (buffered_rows_ == 0) return;
  for (Stored& stored : columns_) {
    std::vector<hsize_t> start(stored.row_shape.size(), 0), count = stored.row_shape, size = stored.row_shape;
    start[0] = static_cast<hsize_t>(written_rows_);
    count[0] = static_cast<hsize_t>(buffered_rows_);
    size[0] = start[0] + count[0];
    check(H5Dset_extent(stored.dataset.get(), size.data()));
    const auto in_file = own<h5::Space>(H5Dget_space(stored.dataset.get()));
    check(H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
    const auto in_memory = own<h5::Space>(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
    std::vector<const char*> starts;
    for (const std::string& text : stored.texts) starts.push_back(text.c_str());
    const auto text = h5::text_type();
    const hid_t type = stored.column.is_text ? text.get() : h5::native_type(stored.column.dtype);
    const void* const values = stored.column.is_text ? static_cast<const void*>(starts.data()) : stored.buffer.data();
    check(H5Dwrite(stored.dataset.get(), type, in_memory.get(), in_file.get(), H5P_DEFAULT, values));
  }
  for (Stored& stored : columns_) {  // cleared only after all writes, so that a failed write can be repeated
    stored.buffer.clear();
    stored.texts.clear();
  }
  written_rows_ += buffered_rows_;
  buffered_rows_ = 0;
  h5::set_attribute(group_.get(), "committed_rows", written_rows_);
}

std::string Table::last_row_as_json() const {
  std::string line = "{\"table\": \"" + spec_.group + '"';
  for (const Stored& stored : columns_) {
    const bool has_row = !stored.buffer.empty() || !stored.texts.empty();
    if (!has_row || stored.row_shape.size() > 1) continue;  // metrics.jsonl contains only scalars
    line += ", \"" + stored.column.name + "\": ";
    line += stored.column.is_text
                ? nlohmann::json(stored.texts.back()).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
                : as_json(stored.column, stored.buffer.data() + stored.buffer.size() - stored.row_bytes);
  }
  return line + "}";
}

}  // namespace chorale
