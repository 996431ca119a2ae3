#include "facts_behind.hpp"

#include "base/some_of.hpp"
#include "base/text.hpp"
#include "data/format.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace lockstep::import {

namespace {

/// What a file says of its samples.
struct Said {
    std::string path;
    std::vector<std::string> classes;
    std::vector<std::string> columns;
    std::vector<double> rate;
    std::vector<double> mean;
    bool has_sources = false;

    bool is_silent() const {
        return classes.empty() && columns.empty() && rate.empty() && mean.empty() && !has_sources;
    }
};

Said said_by(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    auto const texts = [&](char const* name) {
        return file.texts_attribute("/", name).value_or(std::vector<std::string>{});
    };
    auto const numbers = [&](char const* name) {
        return file.number_attribute("/", name).value_or(std::vector<double>{});
    };
    return {path.string(),
            texts("classes"),
            texts(data::columns_name),
            numbers(data::sample_rate_name),
            numbers("mean"),
            file.text_attribute("/", "format") == data::format_name &&
                file.exists(data::sources_name)};
}

/// The files that a dataset leads to, and what becomes of what they say.
class Behind {
  public:
    Behind(h5::File const& file, std::string const& dataset) {
        auto const origin = file.origin(dataset);
        if (origin.file != file.path()) {
            files_.push_back(said_by(origin.file));
        }
        if (origin.is_virtual && std::ranges::all_of(files_, &Said::is_silent)) {
            files_.clear(); // a link to a view that says nothing itself
            std::ranges::transform(origin.sources, std::back_inserter(files_), said_by);
        }
    }

    /// What all files say, if it fits; a part of it is nothing to go by.
    template <class Values>
    Values take(std::string const& name, Values Said::*what, std::size_t size = 0) {
        if (std::ranges::all_of(files_, [&](Said const& each) { return (each.*what).empty(); })) {
            return {};
        }
        auto const& first = files_.front().*what;
        bool const fits =
            (size == 0 || first.size() == size) &&
            std::ranges::all_of(files_, [&](Said const& each) { return each.*what == first; });
        (fits ? taken_ : lost_).push_back(name);
        return fits ? first : Values{};
    }
    void lose(std::vector<std::string> const& names) {
        lost_.insert(lost_.end(), names.begin(), names.end());
    }

    std::vector<Said> const& files() const { return files_; }
    std::vector<std::string> lines(h5::File const& file) const {
        std::vector<std::string> names;
        std::ranges::transform(files_, std::back_inserter(names), &Said::path);
        std::vector<std::string> lines;
        if (!taken_.empty()) {
            lines.push_back(concat(file.path().string(), " leads to samples in ",
                                   some_of(names, max_files), ", whose ", list_text(taken_),
                                   taken_.size() == 1 ? " is" : " are", " taken over"));
        }
        if (!lost_.empty()) {
            lines.push_back(concat("warning: ", file.path().string(), " leads to samples in ",
                                   some_of(names, max_files), ", whose ", list_text(lost_),
                                   lost_.size() == 1 ? " is" : " are",
                                   " not taken over. Import these files themselves to keep all"));
        }
        return lines;
    }

  private:
    static constexpr std::size_t max_files = 3; ///< in a line

    std::vector<Said> files_;
    std::vector<std::string> taken_;
    std::vector<std::string> lost_;
};

} // namespace

std::vector<std::string> add_facts_behind(h5::File const& file, SourceField const& inputs,
                                          SourceField const& target, data::Facts& facts) {
    Behind of_target(file, target.path());
    if (facts.classes.empty()) {
        facts.classes = of_target.take("list of classes", &Said::classes);
    }
    Behind of_inputs(file, inputs.path());
    auto const& row = inputs.kept().row;
    if (facts.columns.empty() && !row.empty()) {
        facts.columns = of_inputs.take("list of columns", &Said::columns, row.back());
    }
    if (facts.sample_rate == 0) {
        auto const rate = of_inputs.take("sample rate", &Said::rate, 1);
        facts.sample_rate = rate.empty() ? 0 : rate.front();
    }
    auto const any = [&](auto const& says) { return std::ranges::any_of(of_inputs.files(), says); };
    if (facts.mean.empty() && any([](Said const& each) { return !each.mean.empty(); })) {
        of_inputs.lose({"mean", "std"});
    }
    if (!file.exists(data::sources_name) && any(&Said::has_sources)) {
        of_inputs.lose({data::sources_name});
    }
    auto lines = of_target.lines(file);
    std::ranges::copy(of_inputs.lines(file), std::back_inserter(lines));
    return lines;
}

} // namespace lockstep::import
