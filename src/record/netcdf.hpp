// Writes HDF5 files that follow the netCDF-4 conventions, so that xarray, pandas, ncdump and h5dump can read the files
// without Chorale. Every dimension is a coordinate variable and an HDF5 dimension scale. Every variable has a scale attached
// to each of its dimensions. A column of labels is stored as small integers with CF's flag_values and flag_meanings.
#pragma once
#include <string>
#include <vector>

#include "src/record/h5.hpp"

namespace chorale {

struct Dimension {
  std::string name;
  std::vector<std::string> labels = {};  // the meaning of each index; if it is empty, indices have no labels
  std::int64_t size = 0;                 // number of indices; used only if `labels` is empty
};

struct Column {
  std::string name;
  DType dtype = DType::f64;
  std::string units;  // CF abbreviations: s, byte, 1
  std::string about;
  std::vector<std::string> labels = {};      // the meaning of each value of a u8 column
  std::vector<std::string> dimensions = {};  // additional dimensions after the row dimension
  bool is_text = false;                      // strings of any length; `dtype` is then not used
};

// Writes a fixed dimension and its coordinate in `group`.
void write_dimension(hid_t group, const Dimension& dimension);

// Sets the attributes `units` and `long_name`. Skips an attribute whose value would be empty.
void describe_variable(hid_t dataset, const std::string& units, const std::string& about);

// Opens the scale of a dimension in the group, or otherwise in the root.
h5::Dataset scale_named(hid_t root, hid_t group, const std::string& name);
hsize_t length_of(hid_t scale);

// Creates an empty variable for a column. The first dimension, `rows`, is unlimited. The column's additional dimensions come
// after `rows`; their scales must exist in the group or in the root. The column with the name `rows` is the coordinate
// variable of the rows and must be created first.
h5::Dataset make_variable(hid_t root, hid_t group, const std::string& rows, const Column& column);

}  // namespace chorale
