#pragma once

#include "lockstep/nn/registry.hpp"

namespace lockstep::nn {

ModelKind lmu_asr_kind();

} // namespace lockstep::nn
