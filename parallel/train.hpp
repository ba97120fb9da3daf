// All that a program of your own needs to train a transformer: one include, and the library of collectives/chorale.hpp.
// Installed, and for programs built against this folder, it is <chorale/parallel/train.hpp>. examples/ has two such
// programs.
//
//   build_gpt(shape, …)                 the model as a list of layers, for a loop of your own
//   Training(options, mesh, …)          the same with the library's step: any layout, any numerics
//   Mesh(parse_layout("dp2.tp2", n), …) who shares what
//   SyntheticLanguage, Sampler          something to learn, and in which order
#pragma once
#include "collectives/chorale.hpp"
#include "layers/gpt.hpp"
#include "layers/optimizer.hpp"
#include "parallel/training.hpp"
#include "src/data/sampler.hpp"
#include "src/data/synthetic.hpp"
