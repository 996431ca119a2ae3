#include "model_files/enough_weights.hpp"

#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"

#include <algorithm>
#include <filesystem>

namespace lockstep::train {

void require_enough_weights(config::Model const& model, nn::Interface const& interface,
                            checkpoint::VerifiedFile const& file) {
    constexpr double of_each_byte = 16; // weights in int8, of which most channels were removed
    constexpr double always = 1 << 24;
    auto const weights = checkpoint::open_weights(file);
    double bytes = 0;
    for (auto const& entry : weights->entries()) { // which may lie in several files
        bytes += static_cast<double>(entry.bytes());
    }
    bytes = std::max(bytes, static_cast<double>(std::filesystem::file_size(file.path())));
    if (auto const parameters = nn::parameter_count(model, interface);
        parameters > always && parameters > of_each_byte * bytes) {
        throw Error(ExitCode::data,
                    {concat(file.path().string(), " does not fit the model that it describes"),
                     concat("for samples such as those that it names, the model would have ",
                            significant(parameters, 3), " parameters, but the file has ",
                            bytes_text(static_cast<std::uint64_t>(bytes)), " of weights"),
                     "Copy the file again from its source, or name another"});
    }
}

} // namespace lockstep::train
