// A table is a group of the HDF5 file with one unlimited dimension, the rows. All columns extend along this dimension:
//
//   /phases   phase_time(step*, rank, phase)        `step` is the dimension of the rows. The dimension scale `rank` is in
//             step(step*)  phase(phase)             the root, the scale `phase` in the group
//
// append() copies a row into a buffer, and write() writes the buffered rows to the file. A column of labels stores small
// integers with CF's flag_values and flag_meanings. A column of texts stores strings that are not known in advance.
//
// A row is a struct with a list of its columns, so a misspelled or mistyped column does not compile:
//
//   struct EvalRow {
//     std::int64_t step; float loss;
//     static auto columns() { return std::tuple{column("step", &EvalRow::step, "1", "training step"),
//                                               column("loss", &EvalRow::loss, "1", "mean loss in nats")}; }
//   };
//
// If a command also prints its rows for programs, it prints the same columns (bench/series_row.hpp). A column can have a
// different name in the printed rows, or appear only in the record or only in the printed rows.
#pragma once
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "src/base/error.hpp"
#include "src/record/netcdf.hpp"

namespace chorale {

struct TableSpec {
  std::string group;  // "train"
  std::string rows;   // the name of the rows' dimension: "step"
  std::vector<Column> columns;
  std::vector<Dimension> dimensions = {};  // defined in this group; all other dimensions belong to the root
  bool live = false;                       // each row is also written to metrics.jsonl immediately
};

// One field of a row. A vector holds the values along the column's additional dimensions; the last dimension varies fastest.
template <class Row, class Value>
struct Field {
  Column column;
  Value Row::*member;
  std::string printed = column.name;  // name of the column in JSON and CSV, or "" if the column is not printed
  bool recorded = true;

  Field printed_as(std::string name) const { return {column, member, std::move(name), recorded}; }
  Field only_recorded() const { return {column, member, "", true}; }
  Field only_printed() const { return {column, member, printed, false}; }
};

// Returns the index of the string's label. A detail after a colon is not part of the label. For example, "simulated:my.toml"
// has the label "simulated". A string that matches no label gets the index after the last label.
std::uint8_t label_of(const Column& column, const std::string& text);

// Returns the stored form of a value. An enumerator, a flag or a labeled string is stored as an index, and an absent number
// as −1.
template <class T>
decltype(auto) stored(const T& value, const Column& column) {
  if constexpr (std::is_same_v<T, std::string>)
    return label_of(column, value);
  else if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>)
    return static_cast<std::uint8_t>(value);
  else if constexpr (requires { value.value_or(-1); })
    return value.value_or(-1);
  else
    return (value);
}

template <class T>
struct ElementOf {
  using type = T;
};
template <class T>
struct ElementOf<std::vector<T>> {
  using type = T;
};

template <class Row, class Value>
Field<Row, Value> column(std::string name, Value Row::*member, std::string units, std::string about,
                         std::vector<std::string> labels = {}, std::vector<std::string> dimensions = {}) {
  using Stored = std::remove_cvref_t<decltype(stored(std::declval<const Value&>(), std::declval<const Column&>()))>;
  using Element = typename ElementOf<Stored>::type;
  return {
      {std::move(name), dtype_of<Element>(), std::move(units), std::move(about), std::move(labels), std::move(dimensions)},
      member};
}

// A column whose strings can have any value. Columns with a few possible strings use labels instead, which need one byte.
template <class Row>
Field<Row, std::string> text_column(std::string name, std::string Row::*member, std::string about) {
  return {{.name = std::move(name), .about = std::move(about), .is_text = true}, member};
}

// Calls f with each field of a row type, in the order of columns().
template <class Row, class F>
void each_column(F&& f) {
  std::apply([&](auto&&... field) { (f(field), ...); }, Row::columns());
}

class Table {
 public:
  Table(hid_t file, const TableSpec& spec);  // creates the group, its dimensions and its empty columns

  template <class Row>
  void append(const Row& row) {
    try {
      std::size_t c = 0;
      each_column<Row>([&](const auto& field) {
        if (field.recorded) buffer(c++, field, row.*field.member);
      });
      finish_row(c);
    } catch (...) {
      drop_unfinished_row();  // otherwise the first columns of this row would be added to the next row
      throw;
    }
  }

  void write();  // writes the buffered rows; `committed_rows` then tells readers how many rows are valid

  const TableSpec& spec() const { return spec_; }
  std::int64_t rows() const { return written_rows_ + buffered_rows_; }
  std::string last_row_as_json() const;

 private:
  struct Stored {
    Column column;
    h5::Dataset dataset;
    std::vector<hsize_t> row_shape;  // {1, lengths of additional dimensions…}
    std::int64_t row_bytes = 0;
    std::vector<std::byte> buffer;
    std::vector<std::string> texts;  // the buffer of a text column
  };

  void finish_row(std::size_t fields);
  void drop_unfinished_row();
  void buffer_bytes(std::size_t column, DType dtype, const void* values, std::int64_t bytes);
  void buffer_text(std::size_t column, const std::string& text);
  template <class Row, class Value>
  void buffer(std::size_t c, const Field<Row, Value>& field, const Value& value) {
    if constexpr (std::is_same_v<Value, std::string>)
      if (field.column.is_text) return buffer_text(c, value);
    buffer(c, stored(value, field.column));
  }
  template <class T>
  void buffer(std::size_t c, const T& value) {
    buffer_bytes(c, dtype_of<T>(), &value, sizeof value);
  }
  template <class T>
  void buffer(std::size_t c, const std::vector<T>& values) {
    buffer_bytes(c, dtype_of<T>(), values.data(), static_cast<std::int64_t>(values.size() * sizeof(T)));
  }

  TableSpec spec_;
  h5::Group group_;
  std::vector<Stored> columns_;
  bool counts_rows_ = false;  // if no column is named after the row dimension, the last column numbers the rows
  std::int64_t written_rows_ = 0, buffered_rows_ = 0;
};

// Adds the columns of a row type to a table's spec: table_of<EvalRow>({.group = "eval", .rows = "step"}).
template <class Row>
TableSpec table_of(TableSpec spec) {
  each_column<Row>([&](const auto& field) {
    if (field.recorded) spec.columns.push_back(field.column);
  });
  return spec;
}

}  // namespace chorale
