#include "model_files/common_weights.hpp"

#include "base/adapter_names.hpp"
#include "base/some_of.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

constexpr std::size_t shown_names = 4;

std::vector<std::string> texts_of(std::vector<CommonWeights::Fresh> const& fresh) {
    std::vector<std::string> texts;
    for (auto const& each : fresh) {
        texts.push_back(each.in_file.empty()
                            ? each.name
                            : concat(each.name, " (the file has ", each.in_file, ")"));
    }
    return texts;
}

std::int64_t values_in(nn::Model const& model) {
    std::int64_t count = 0;
    for (auto const& item : model.named_parameters()) {
        count += is_of_adapter(item.key()) ? 0 : item.value().numel();
    }
    for (auto const& tensor : model.buffers()) {
        count += tensor.numel();
    }
    return count;
}

} // namespace

CommonWeightsText text_of(CommonWeights const& common, nn::Model const& model,
                          std::string const& path) {
    auto const fresh = texts_of(common.fresh);
    CommonWeightsText text{concat("the initial weights come from ", path, ": ", common.taken.size(),
                                  " of ", amount_of(common.taken.size() + fresh.size(), "tensor"),
                                  " (", count_text(common.values), " of ",
                                  count_text(values_in(model), "value"), ")"),
                           {}};
    for (auto const& [what, names] : {std::pair("starting over from run.seed", &fresh),
                                      std::pair("left over in the file", &common.left_over)}) {
        if (!names->empty()) {
            text.remark += concat("; ", what, ": ", some_of(*names, shown_names));
        }
        if (names->size() > shown_names) {
            text.details.push_back(concat("model.weights, ", what, ": ", joined(*names, ", ")));
        }
    }
    return text;
}

} // namespace lockstep::train
