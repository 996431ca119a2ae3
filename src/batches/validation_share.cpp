#include "batches/validation_share.hpp"

#include "base/text.hpp"
#include "batches/workload.hpp"
#include "config/share.hpp"

namespace lockstep::train {

std::optional<std::pair<data::Dataset, data::Dataset>> divide(config::Deck const& deck,
                                                              data::Dataset const& train) {
    auto const percent = config::share_of(deck.data.validation);
    return percent
               ? std::optional(train.divided(*percent, static_cast<std::uint64_t>(deck.run.seed)))
               : std::nullopt;
}

std::vector<std::string> share_remarks(config::Deck const& deck, Workload const& work) {
    if (!config::share_of(deck.data.validation) || !work.validation) {
        return {};
    }
    constexpr std::size_t max = 32; // of a longer list nobody reads the end
    auto const& names = work.train->class_names();
    auto const& learnt = work.train->class_counts();
    auto const& measured = work.validation->class_counts();
    std::vector<std::string> counts;
    std::vector<std::string> none;
    for (std::size_t i = 0; i < measured.size(); ++i) {
        if (counts.size() < max) {
            counts.push_back(
                concat(names[i], " ", count_text(learnt[i]), " + ", count_text(measured[i])));
        }
        if (measured[i] == 0 && learnt[i] > 0 && none.size() < max) {
            none.push_back(concat(names[i], " (", amount_of(learnt[i], "sample"), ")"));
        }
    }
    auto const by_class = counts.empty() ? std::string("drawn at random") : "drawn by class";
    std::vector<std::string> remarks{concat(
        "validation is ", trimmed(deck.data.validation), " of data.train, ", by_class,
        " with seed ", deck.run.seed, ": ", count_text(work.train->samples()),
        " samples for training, ", count_text(work.validation->samples()), " for validation",
        counts.empty() ? ""
                       : concat(" (", joined(counts, ", "), measured.size() > max ? ", …)" : ")"))};
    if (!none.empty()) {
        remarks.push_back(
            concat("warning: too few samples to validate ",
                   none.size() == 1 ? "class " : "classes ", joined(none, ", "),
                   ": give data.validation a larger share, or add samples of these classes"));
    }
    return remarks;
}

} // namespace lockstep::train
