// netCDF-4's conventions on top of HDF5, so that xarray, pandas, ncdump and h5dump read our files without our code. Every
// dimension is a coordinate variable and a dimension scale. Every variable has a scale on each of its dimensions. A
// column of words is stored as small integers with CF's flag_values and flag_meanings.
#pragma once
#include <string>
#include <vector>

#include "src/record/h5.hpp"

namespace chorale {

struct Dimension {
  std::string name;
  std::vector<std::string> labels = {};  // its coordinate: codes with these meanings …
  std::int64_t size = 0;                 // … or, without labels, 0 … size − 1
};

struct Column {
  std::string name;
  DType dtype = DType::f64;
  std::string units;  // CF abbreviations: s, byte, 1
  std::string about;
  std::vector<std::string> labels = {};      // for a u8 column
  std::vector<std::string> dimensions = {};  // besides the rows' dimension
};

// Writes a fixed dimension and its coordinate in `group`.
void write_dimension(hid_t group, const Dimension& dimension);

// Attaches the units and the description, unless empty.
void describe_variable(hid_t dataset, const std::string& units, const std::string& about);

// The scale of a dimension: from the group, or else from the root.
h5::Dataset scale_named(hid_t root, hid_t group, const std::string& name);
hsize_t length_of(hid_t scale);

// An empty variable (rows*, further dimensions…). Dimensions come from the group, or else from the root. The
// column named like `rows` is the coordinate itself and must be created first.
h5::Dataset make_variable(hid_t root, hid_t group, const std::string& rows, const Column& column);

}  // namespace chorale
