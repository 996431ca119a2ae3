#include "part_sums.hpp"

#include "base/text.hpp"
#include "comm/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace lockstep::import {

namespace {

/// All that spreads hold, as numbers to be summed.
std::span<double> numbers_of(std::vector<Spread>& spreads) {
    static_assert(sizeof(Spread) == 3 * sizeof(double));
    return {reinterpret_cast<double*>(spreads.data()), 3 * spreads.size()};
}

/// The texts of all ranks, which may hold any byte that a file's name may hold.
std::vector<std::string> texts_of_all(comm::Communicator const& comm,
                                      std::vector<std::string> const& own) {
    std::string const end(1, '\0');
    std::vector<std::string> all;
    for (auto const& text : comm::all_gather_text(comm, joined(own, end))) {
        auto const texts = split(text, '\0');
        all.insert(all.end(), texts.begin(), texts.end());
    }
    return all;
}

} // namespace

PartSums::PartSums(JoinPlan const& plan, std::size_t sets)
    : classes_(plan.form.class_names.size()), samples_(plan.parts.size()),
      class_counts_(sets * classes_),
      spreads_(plan.parts.size() * ImportPart(plan.form).spreads.size()) {}

void PartSums::count(std::size_t number, PartFile const& file, ImportPart const& part) {
    samples_[number] = static_cast<std::int64_t>(part.samples);
    for (auto const& [label, counted] : part.class_counts) {
        class_counts_.at(file.set * classes_ + static_cast<std::size_t>(label)) += counted;
    }
    std::copy(part.spreads.begin(), part.spreads.end(),
              spreads_.begin() + static_cast<std::ptrdiff_t>(number * part.spreads.size()));
    skipped_.insert(skipped_.end(), part.skipped.begin(), part.skipped.end());
    for (auto const& [text, note] : part.notes) {
        notes_[text].add(note.items, note.example);
    }
}

void PartSums::sum_over_ranks(comm::Communicator const& comm) {
    comm::all_reduce(comm, std::span(samples_), comm::Reduce::sum);
    comm::all_reduce(comm, std::span(class_counts_), comm::Reduce::sum);
    comm::all_reduce(comm, numbers_of(spreads_), comm::Reduce::sum);
    skipped_ = texts_of_all(comm, skipped_);
    std::sort(skipped_.begin(), skipped_.end());
    std::vector<std::string> own;
    for (auto const& [text, note] : std::exchange(notes_, {})) {
        own.insert(own.end(), {text, std::to_string(note.items), note.example});
    }
    auto const all = texts_of_all(comm, own);
    for (std::size_t i = 0; i + 2 < all.size(); i += 3) {
        notes_[all[i]].add(std::stoll(all[i + 1]), all[i + 2]);
    }
}

std::vector<std::int64_t> PartSums::class_counts(std::size_t set) const {
    auto const from = class_counts_.begin() + static_cast<std::ptrdiff_t>(set * classes_);
    return {from, from + static_cast<std::ptrdiff_t>(classes_)};
}

void PartSums::give_moments(JoinPlan& plan) const {
    auto& form = plan.form;
    std::vector<Spread> total(ImportPart(form).spreads.size());
    // Part by part in their order, whichever ranks made them.
    for (std::size_t i = 0; i < samples_.size() && plan.parts[i].set == 0; ++i) {
        for (std::size_t c = 0; c < total.size(); ++c) {
            total[c].merge(spreads_[i * total.size() + c]);
        }
    }
    double const unit = form.fields.front().type == h5::Type::u8 ? 255 : 1;
    for (auto const& spread : total) {
        form.mean.push_back(spread.mean / unit);
        form.std.push_back(spread.variance() > 0 ? std::sqrt(spread.variance()) / unit : 1);
    }
}

} // namespace lockstep::import
