// The report as one self-contained HTML file, without scripts and without access to the network. Its layout suits phones,
// laptops and print, in light and dark: the page has each picture twice, for narrow and for wide windows, and shows one of
// them. Every picture has a description for screen readers, a table of the drawn numbers, and a link that saves it as SVG.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

std::string page_of(const RecordSet& records);

// The figures of the page as files of their own, for papers.
struct FigureFile {
  std::string file, svg;  // file: "loss-1.svg"
};
std::vector<FigureFile> figure_files_of(const RecordSet& records);

}  // namespace chorale::report
