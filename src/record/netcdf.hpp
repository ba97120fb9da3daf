// netCDF-4's conventions on top of HDF5, so that xarray, pandas, ncdump and h5dump read our files with no code of ours:
// every dimension is a coordinate variable and a dimension scale, every variable has a scale on each of its dimensions,
// and a column of words is small integers with CF's flag_values and flag_meanings.
#pragma once
#include <string>
#include <vector>

#include "src/record/h5.hpp"

namespace chorale {

struct Dimension {
  std::string name;
  std::vector<std::string> labels = {};  // its coordinate: codes with these meanings …
  std::int64_t size = 0;                 // … or, with no labels, 0 … size-1
};

struct Column {
  std::string name;
  DType dtype = DType::f64;
  std::string units;  // CF abbreviations: s, byte, 1
  std::string about;
  std::vector<std::string> labels = {};      // of a u8 column
  std::vector<std::string> dimensions = {};  // beside the rows'
};

// A fixed dimension, written whole, in `group`.
void write_dimension(hid_t group, const Dimension& dimension);

// Units and a sentence, where they are not empty.
void describe_variable(hid_t dataset, const std::string& units, const std::string& about);

// The scale of a dimension, which is looked for in the group, then in the root.
h5::Dataset scale_named(hid_t root, hid_t group, const std::string& name);
hsize_t length_of(hid_t scale);

// An empty variable (rows*, further dimensions…). The dimensions are looked for in the group, then in the root; the
// column named like `rows` becomes the coordinate itself and must be made first.
h5::Dataset make_variable(hid_t root, hid_t group, const std::string& rows, const Column& column);

}  // namespace chorale
