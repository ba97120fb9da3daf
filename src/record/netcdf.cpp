#include "src/record/netcdf.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

using h5::check;
using h5::own;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void describe_labels(hid_t dataset, const std::vector<std::string>& labels) {
  if (labels.empty()) return;
  require(labels.size() <= 256, "{} labels do not fit in one byte", labels.size());
  for (const std::string& label : labels)
    require(!label.empty() && label.find_first_of(" \t\n") == std::string::npos,
            "\"{}\" is not a label: labels must not contain blanks", label);
  std::vector<std::uint8_t> codes(labels.size());
  std::iota(codes.begin(), codes.end(), std::uint8_t{0});
  h5::set_attribute(dataset, "flag_values", codes);
  h5::set_attribute(dataset, "flag_meanings", join(labels, " "));
}

// Absent values are stored as NaN in floats and −1 in integers. Only float variables declare the absent value in _FillValue,
// because readers convert integer variables with a _FillValue to floats.
void set_fill(hid_t properties, DType dtype) {
  const std::int64_t absent = -1;
  if (is_floating(dtype)) check(H5Pset_fill_value(properties, H5T_NATIVE_DOUBLE, &nan));
  if (dtype == DType::i32 || dtype == DType::i64) check(H5Pset_fill_value(properties, H5T_NATIVE_INT64, &absent));
}

void mark_fill(hid_t dataset, DType dtype) {
  if (!is_floating(dtype)) return;
  const hsize_t one = 1;
  const auto space = own<h5::Space>(H5Screate_simple(1, &one, nullptr));
  const auto attribute =
      own<h5::Attribute>(H5Acreate2(dataset, "_FillValue", h5::stored_type(dtype), space.get(), H5P_DEFAULT, H5P_DEFAULT));
  check(H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, &nan));
}

}  // namespace

h5::Dataset scale_named(hid_t root, hid_t group, const std::string& name) {
  const bool local = check(H5Lexists(group, name.c_str(), H5P_DEFAULT)) > 0;
  require(local || check(H5Lexists(root, name.c_str(), H5P_DEFAULT)) > 0,
          "the dimension {} is neither in its group nor in the root", name);
  return own<h5::Dataset>(H5Dopen2(local ? group : root, name.c_str(), H5P_DEFAULT));
}

hsize_t length_of(hid_t scale) {
  const auto space = own<h5::Space>(H5Dget_space(scale));
  return static_cast<hsize_t>(check(H5Sget_simple_extent_npoints(space.get())));
}

void write_dimension(hid_t group, const Dimension& dimension) {
  const bool labeled = !dimension.labels.empty();
  const hsize_t size = labeled ? dimension.labels.size() : static_cast<hsize_t>(dimension.size);
  require(size > 0, "the dimension {} is empty", dimension.name);
  const auto space = own<h5::Space>(H5Screate_simple(1, &size, nullptr));
  const auto dataset =
      own<h5::Dataset>(H5Dcreate2(group, dimension.name.c_str(), h5::stored_type(labeled ? DType::u8 : DType::i64),
                                  space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  std::vector<std::int64_t> index(size);
  std::iota(index.begin(), index.end(), std::int64_t{0});
  check(H5Dwrite(dataset.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, index.data()));
  describe_labels(dataset.get(), dimension.labels);
  check(H5DSset_scale(dataset.get(), dimension.name.c_str()));
}

void describe_variable(hid_t dataset, const std::string& units, const std::string& about) {
  if (!units.empty()) h5::set_attribute(dataset, "units", units);
  if (!about.empty()) h5::set_attribute(dataset, "long_name", about);
}

h5::Dataset make_variable(hid_t root, hid_t group, const std::string& rows, const Column& column) {
  std::vector<h5::Dataset> scales;
  std::vector<hsize_t> size{0}, most{H5S_UNLIMITED}, chunk{128};
  for (const std::string& name : column.dimensions) {
    scales.push_back(scale_named(root, group, name));
    size.push_back(length_of(scales.back().get()));
    most.push_back(size.back());
    chunk.push_back(size.back());
  }
  // HDF5 reads and writes only complete chunks, and allocates a chunk when its first row is written. Therefore chunks of
  // wide rows have fewer rows.
  const hsize_t row_elements = std::accumulate(size.begin() + 1, size.end(), hsize_t{1}, std::multiplies<>());
  chunk[0] = std::clamp<hsize_t>(4096 / row_elements, 1, 128);

  const auto properties = own<h5::Properties>(H5Pcreate(H5P_DATASET_CREATE));
  check(H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()));
  if (!column.is_text)
    check(H5Pset_fletcher32(properties.get()));  // a reader detects a flipped bit. HDF5 has no checksums for strings
  if (!column.is_text) set_fill(properties.get(), column.dtype);
  const auto space = own<h5::Space>(H5Screate_simple(static_cast<int>(size.size()), size.data(), most.data()));
  const auto text = h5::text_type();
  const hid_t type = column.is_text ? text.get() : h5::stored_type(column.dtype);
  auto dataset = own<h5::Dataset>(
      H5Dcreate2(group, column.name.c_str(), type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT));
  describe_variable(dataset.get(), column.units, column.about);
  describe_labels(dataset.get(), column.labels);

  if (column.name == rows) {
    check(H5DSset_scale(dataset.get(), rows.c_str()));
    return dataset;
  }
  if (!column.is_text) mark_fill(dataset.get(), column.dtype);
  const auto row_scale = own<h5::Dataset>(H5Dopen2(group, rows.c_str(), H5P_DEFAULT));
  check(H5DSattach_scale(dataset.get(), row_scale.get(), 0));
  for (unsigned i = 0; i < scales.size(); ++i) check(H5DSattach_scale(dataset.get(), scales[i].get(), i + 1));
  return dataset;
}

}  // namespace chorale
