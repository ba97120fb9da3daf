// Copies a finished run's record into a second file. The root group of the record, with all its subgroups, becomes a group
// of the second file.
//
//   run.h5:  /            attributes, rank(rank)          suite.h5:  /runs/dp4-r1/          the attributes, rank(rank)
//            /train       loss(step*) …                              /runs/dp4-r1/train     loss(step*) …
//
// HDF5's own copy (H5Ocopy) leaves references to dimension scales that point into the source file. Therefore embed_record
// copies the values and attaches the scales itself. embed_record skips uncommitted rows.
#pragma once
#include <filesystem>
#include <string>

#include "src/record/h5.hpp"

namespace chorale {

void embed_record(hid_t file, const std::string& group, const std::filesystem::path& record);

}  // namespace chorale
