// A thin layer over HDF5: identifiers that close themselves, checked calls, and attributes that netCDF-4 readers understand.
// Attributes are scalars, 1-D arrays or fixed-length strings. Fixed-length strings can be rewritten in place.
#pragma once
#define H5_USE_110_API 1  // use the HDF5 1.10 interface, even with newer libraries
#include <hdf5.h>

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include <chorale/element.hpp>
#include "src/base/handle.hpp"

namespace chorale::h5 {

// Returns the result of a successful call; otherwise throws with HDF5's own message.
std::int64_t check(std::int64_t result, std::source_location where = std::source_location::current());

template <herr_t (*Close)(hid_t)>
struct IdTraits {
  using type = hid_t;
  static type none() { return H5I_INVALID_HID; }
  static void close(type id) noexcept { Close(id); }
};

using File = Handle<IdTraits<H5Fclose>>;
using Group = Handle<IdTraits<H5Gclose>>;
using Dataset = Handle<IdTraits<H5Dclose>>;
using Space = Handle<IdTraits<H5Sclose>>;
using Datatype = Handle<IdTraits<H5Tclose>>;
using Attribute = Handle<IdTraits<H5Aclose>>;
using Properties = Handle<IdTraits<H5Pclose>>;

// Owns an identifier from a call that can fail, as in own<h5::File>(H5Fcreate(…)).
template <class Owner>
Owner own(hid_t id, std::source_location where = std::source_location::current()) {
  return Owner(static_cast<hid_t>(check(id, where)));
}

std::string version();  // version of the library: "1.10.8"

// Disables HDF5 plugins, and prevents HDF5 from printing its error stack on this thread. `check` reports the error stack
// instead.
void quiet();

hid_t native_type(DType dtype);  // type in memory, owned by the library. Throws for 16-bit floats.
hid_t stored_type(DType dtype);  // type in files: little endian on every machine
Datatype text_type();            // variable-length UTF-8

// Reserves at least `room` bytes, so that a longer string can be written later.
void set_attribute(hid_t object, const std::string& name, const std::string& text, std::size_t room = 0);
void set_attribute(hid_t object, const std::string& name, std::int64_t value);
void set_attribute(hid_t object, const std::string& name, double value);
void set_attribute(hid_t object, const std::string& name, const std::vector<std::uint8_t>& values);

bool has_attribute(hid_t object, const std::string& name);
std::string text_attribute(hid_t object, const std::string& name);  // "" if it is missing or not a string
std::int64_t whole_attribute(hid_t object, const std::string& name, std::int64_t otherwise);

bool exists(hid_t file, const std::string& path);       // also false if a parent group in a path such as a/b/c is missing
Group make_group(hid_t file, const std::string& path);  // creates the group and its parents; links keep their creation order
void write_text(hid_t group, const std::string& name, const std::string& text);  // writes a variable-length string as a
                                                                                 // scalar dataset

}  // namespace chorale::h5
