#include "comm/phase.hpp"

namespace lockstep::comm {

std::string_view name_of(Phase phase) {
    switch (phase) {
    case Phase::start_up:
        return "start-up";
    case Phase::train:
        return "training";
    case Phase::data:
        return "reading data";
    case Phase::compute:
        return "forward and backward";
    case Phase::exchange:
        return "the exchange of gradients";
    case Phase::update:
        return "the update";
    case Phase::validation:
        return "validation";
    case Phase::test:
        return "the test";
    case Phase::checkpoint:
        return "writing a checkpoint";
    case Phase::end:
        return "the end";
    case Phase::reporting:
        return "the last records and pictures";
    }
    return "";
}

} // namespace lockstep::comm
