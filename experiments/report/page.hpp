// Builds the report as one self-contained HTML file, without scripts and without access to the network. The page layout
// suits phones, laptops and print, in light and dark mode. The page has each picture twice, for narrow and for wide windows,
// and shows one of them. Every picture has a description for screen readers, a table of its values, and a link that saves it
// as SVG.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

std::string page_of(const RecordSet& records);

// A figure of the page as a separate file, for papers.
struct FigureFile {
  std::string file, svg;  // file: "loss-1.svg"
};
std::vector<FigureFile> figure_files_of(const RecordSet& records);

}  // namespace chorale::report
