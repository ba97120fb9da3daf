// A finished run's record inside another file: its root becomes a group there, with every group below it.
//
//   run.h5:  /            attributes, rank(rank)          suite.h5:  /runs/dp4-r1/          the attributes, rank(rank)
//            /train       loss(step*) …                              /runs/dp4-r1/train     loss(step*) …
//
// HDF5's own copy (H5Ocopy) leaves references to scales pointing into the file they came from; so values are written again, and
// scales attached anew. Rows that the run had not committed stay behind.
#pragma once
#include <filesystem>
#include <string>

#include "src/record/h5.hpp"

namespace chorale {

void adopt_record(hid_t file, const std::string& group, const std::filesystem::path& record);

}  // namespace chorale
