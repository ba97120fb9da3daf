#include "src/record/embed_record.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <vector>

#include "src/record/reader.hpp"

namespace chorale {
namespace {

using h5::check;
using h5::own;

// Whether HDF5 itself manages an attribute. HDF5 recreates its own attributes when dimension scales are attached.
bool made_by_scales(const std::string& name) {
  return name == "CLASS" || name == "NAME" || name == "DIMENSION_LIST" || name == "REFERENCE_LIST";
}

void copy_attributes(hid_t from, hid_t to) {
  H5O_info_t info{};
  check(H5Oget_info(from, &info));
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const auto attribute =
        own<h5::Attribute>(H5Aopen_by_idx(from, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT));
    char name[256] = "";
    check(H5Aget_name(attribute.get(), sizeof name, name));
    if (made_by_scales(name)) continue;
    const auto type = own<h5::Datatype>(H5Aget_type(attribute.get()));
    const auto space = own<h5::Space>(H5Aget_space(attribute.get()));
    std::vector<std::byte> value(static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(space.get()))) *
                                 H5Tget_size(type.get()));
    check(H5Aread(attribute.get(), type.get(), value.data()));
    const auto copy = own<h5::Attribute>(H5Acreate2(to, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
    check(H5Awrite(copy.get(), type.get(), value.data()));
  }
}

// Copies numbers and variable-length strings, the two kinds of values in a record. HDF5 allocates the memory of the strings
// that it reads.
void copy_values(hid_t from, hid_t to, hid_t type, hid_t from_space, hid_t to_space, std::size_t count) {
  std::vector<std::byte> values(count * H5Tget_size(type));
  check(H5Dread(from, type, to_space, from_space, H5P_DEFAULT, values.data()));
  check(H5Dwrite(to, type, to_space, H5S_ALL, H5P_DEFAULT, values.data()));
  if (H5Tis_variable_str(type) > 0) check(H5Dvlen_reclaim(type, to_space, H5P_DEFAULT, values.data()));
}

void copy_dataset(hid_t from_group, hid_t to_group, const std::string& name, std::int64_t committed) {
  const auto from = own<h5::Dataset>(H5Dopen2(from_group, name.c_str(), H5P_DEFAULT));
  const auto type = own<h5::Datatype>(H5Dget_type(from.get()));
  const auto properties = own<h5::Properties>(H5Dget_create_plist(from.get()));
  const auto space = own<h5::Space>(H5Dget_space(from.get()));
  std::vector<hsize_t> size(static_cast<std::size_t>(check(H5Sget_simple_extent_ndims(space.get())))), most(size),
      start(size);
  if (!size.empty()) check(H5Sget_simple_extent_dims(space.get(), size.data(), most.data()));
  if (!size.empty() && most[0] == H5S_UNLIMITED && committed >= 0)
    size[0] = std::min(size[0], static_cast<hsize_t>(committed));
  const auto room = own<h5::Space>(size.empty() ? H5Screate(H5S_SCALAR)
                                                : H5Screate_simple(static_cast<int>(size.size()), size.data(), most.data()));
  const auto to = own<h5::Dataset>(
      H5Dcreate2(to_group, name.c_str(), type.get(), room.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT));
  if (!size.empty()) check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr));
  const auto count = static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(room.get())));
  if (count > 0) copy_values(from.get(), to.get(), type.get(), space.get(), room.get(), count);
  copy_attributes(from.get(), to.get());
  if (H5DSis_scale(from.get()) > 0) check(H5DSset_scale(to.get(), dimension_name(from.get(), 0).c_str()));
}

// Attaches dimension scales to the copied dataset. A scale is looked up by name in the dataset's group, and otherwise in the
// copy of the record's root.
void attach_scales(hid_t from_group, hid_t to_group, hid_t to_root, const std::string& name) {
  const auto from = own<h5::Dataset>(H5Dopen2(from_group, name.c_str(), H5P_DEFAULT));
  if (H5DSis_scale(from.get()) > 0) return;
  const auto to = own<h5::Dataset>(H5Dopen2(to_group, name.c_str(), H5P_DEFAULT));
  const auto space = own<h5::Space>(H5Dget_space(from.get()));
  const auto dimensions = static_cast<unsigned>(check(H5Sget_simple_extent_ndims(space.get())));
  for (unsigned d = 0; d < dimensions; ++d) {
    const std::string dimension = dimension_name(from.get(), d);
    if (dimension.empty()) continue;
    const bool local = check(H5Lexists(to_group, dimension.c_str(), H5P_DEFAULT)) > 0;
    const auto scale = own<h5::Dataset>(H5Dopen2(local ? to_group : to_root, dimension.c_str(), H5P_DEFAULT));
    check(H5DSattach_scale(to.get(), scale.get(), d));
  }
}

void copy_group(hid_t from, hid_t to, hid_t to_root) {
  copy_attributes(from, to);
  const std::int64_t committed = h5::whole_attribute(from, "committed_rows", -1);
  const auto datasets = links_in(from, H5O_TYPE_DATASET);
  for (const std::string& name : datasets) copy_dataset(from, to, name, committed);
  for (const std::string& name : datasets) attach_scales(from, to, to_root, name);
  for (const std::string& name : links_in(from, H5O_TYPE_GROUP)) {
    const auto below = own<h5::Group>(H5Gopen2(from, name.c_str(), H5P_DEFAULT));
    const auto copy = h5::make_group(to, name);
    copy_group(below.get(), copy.get(), to_root);
  }
}

}  // namespace

void embed_record(hid_t file, const std::string& group, const std::filesystem::path& record) {
  const h5::File source = open_record_file(record);
  const auto root = own<h5::Group>(H5Gopen2(source.get(), "/", H5P_DEFAULT));
  const auto copy = h5::make_group(file, group);
  copy_group(root.get(), copy.get(), copy.get());
}

}  // namespace chorale
