#include "nn/writes.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::nn {

void refuse_write(ForbiddenWrite const& write) {
    throw Error(
        ExitCode::usage,
        {concat(write.model, " cannot be trained"),
         concat(write.by.empty() ? std::string("its forward method") : "operator " + write.by,
                " changes ", write.tensor, ", but a forward method may change only buffers"),
         write.trained ? "Let the forward method change a copy of the parameter. If the parameter "
                         "is not to be trained, register it as a buffer (register_buffer)"
                       : "Register it as a buffer (register_buffer)"});
}

} // namespace lockstep::nn
