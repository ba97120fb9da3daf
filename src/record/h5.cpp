#include "src/record/h5.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/spare_memory.hpp"

namespace chorale::h5 {
namespace {

herr_t collect(unsigned, const H5E_error2_t* error, void* text) {
  auto& all = *static_cast<std::string*>(text);
  if (error->desc && *error->desc) all += (all.empty() ? "" : ": ") + std::string(error->desc);
  return 0;
}

void write_attribute(hid_t object, const std::string& name, hid_t stored, hid_t native, hid_t space, const void* value) {
  const auto attribute = H5Aexists(object, name.c_str()) > 0
                             ? own<Attribute>(H5Aopen(object, name.c_str(), H5P_DEFAULT))
                             : own<Attribute>(H5Acreate2(object, name.c_str(), stored, space, H5P_DEFAULT, H5P_DEFAULT));
  check(H5Awrite(attribute.get(), native, value));
}

}  // namespace

std::int64_t check(std::int64_t result, std::source_location where) {
  if (result >= 0) return result;
  std::string words;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, collect, &words);
  H5Eclear2(H5E_DEFAULT);
  throw Error(Exit::runtime, "an HDF5 call failed", words.empty() ? "HDF5 gave no reason" : words,
              "check that the disk has room and the file is complete", where);
}

std::string version() {
  require_spare_memory("libhdf5");
  unsigned major = 0, minor = 0, release = 0;
  check(H5get_libversion(&major, &minor, &release));
  return fmt::format("{}.{}.{}", major, minor, release);
}

void quiet() {
  check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr));
  check(H5PLset_loading_state(0));  // never loads plugins that a file requests
}

hid_t native_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return H5T_NATIVE_FLOAT;
    case DType::f64: return H5T_NATIVE_DOUBLE;
    case DType::i32: return H5T_NATIVE_INT32;
    case DType::i64: return H5T_NATIVE_INT64;
    case DType::u8: return H5T_NATIVE_UINT8;
    default: misuse(fmt::format("records cannot have columns of {}", name_of(dtype)), std::source_location::current());
  }
}

hid_t stored_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return H5T_IEEE_F32LE;
    case DType::f64: return H5T_IEEE_F64LE;
    case DType::i32: return H5T_STD_I32LE;
    case DType::i64: return H5T_STD_I64LE;
    default: return native_type(dtype);
  }
}

Datatype text_type() {
  auto type = own<Datatype>(H5Tcopy(H5T_C_S1));
  check(H5Tset_size(type.get(), H5T_VARIABLE));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

void set_attribute(hid_t object, const std::string& name, const std::string& text, std::size_t room) {
  const auto type = own<Datatype>(H5Tcopy(H5T_C_S1));
  std::string padded = text;
  padded.resize(std::max({text.size(), room, std::size_t{1}}));
  check(H5Tset_size(type.get(), padded.size()));
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  const auto space = own<Space>(H5Screate(H5S_SCALAR));
  write_attribute(object, name, type.get(), type.get(), space.get(), padded.data());
}

void set_attribute(hid_t object, const std::string& name, std::int64_t value) {
  const auto space = own<Space>(H5Screate(H5S_SCALAR));
  write_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, space.get(), &value);
}

void set_attribute(hid_t object, const std::string& name, double value) {
  const auto space = own<Space>(H5Screate(H5S_SCALAR));
  write_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, space.get(), &value);
}

void set_attribute(hid_t object, const std::string& name, const std::vector<std::uint8_t>& values) {
  const hsize_t size = values.size();
  const auto space = own<Space>(H5Screate_simple(1, &size, nullptr));
  write_attribute(object, name, H5T_NATIVE_UINT8, H5T_NATIVE_UINT8, space.get(), values.data());
}

bool has_attribute(hid_t object, const std::string& name) { return check(H5Aexists(object, name.c_str())) > 0; }

std::string text_attribute(hid_t object, const std::string& name) {
  if (!has_attribute(object, name)) return "";
  const auto attribute = own<Attribute>(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  const auto type = own<Datatype>(H5Aget_type(attribute.get()));
  constexpr std::size_t longest = 1 << 20;  // sizes are read from the file, so they are checked before any allocation
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) > 0) return "";
  const std::size_t size = H5Tget_size(type.get());
  const auto space = own<Space>(H5Aget_space(attribute.get()));
  if (size > longest || H5Sget_simple_extent_npoints(space.get()) != 1) return "";
  std::string text(size, '\0');
  check(H5Aread(attribute.get(), type.get(), text.data()));
  return text.substr(0, text.find('\0'));
}

std::int64_t whole_attribute(hid_t object, const std::string& name, std::int64_t otherwise) {
  if (!has_attribute(object, name)) return otherwise;
  const auto attribute = own<Attribute>(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  const auto type = own<Datatype>(H5Aget_type(attribute.get()));
  const auto space = own<Space>(H5Aget_space(attribute.get()));
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.get()) != 1) return otherwise;
  std::int64_t value = 0;
  check(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value));
  return value;
}

bool exists(hid_t file, const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    if (check(H5Lexists(file, path.substr(0, end).c_str(), H5P_DEFAULT)) == 0) return false;
  }
  return true;
}

Group make_group(hid_t file, const std::string& path) {
  const auto order = own<Properties>(H5Pcreate(H5P_GROUP_CREATE));
  check(H5Pset_link_creation_order(order.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED));
  const auto parents = own<Properties>(H5Pcreate(H5P_LINK_CREATE));
  check(H5Pset_create_intermediate_group(parents.get(), 1));
  return own<Group>(H5Gcreate2(file, path.c_str(), parents.get(), order.get(), H5P_DEFAULT));
}

void write_text(hid_t group, const std::string& name, const std::string& text) {
  const auto type = text_type();
  const auto space = own<Space>(H5Screate(H5S_SCALAR));
  const auto dataset = own<Dataset>(
      exists(group, name) ? H5Dopen2(group, name.c_str(), H5P_DEFAULT)
                          : H5Dcreate2(group, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const char* start = text.c_str();
  check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &start));
}

}  // namespace chorale::h5
