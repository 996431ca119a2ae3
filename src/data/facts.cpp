#include "lockstep/data/facts.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "lockstep/h5/storage.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <tuple>

namespace lockstep::data {

namespace {

/// The first place at which names differ; of a model that is trained further, names that it has at
/// another place.
std::string other_name(std::string const& what, std::vector<std::string> const& own,
                       std::vector<std::string> const& known, std::string const& whose, Use use) {
    if (own.empty() || known.empty()) {
        return {};
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        bool const same = i < known.size() && own[i] == known[i];
        if (same || (use == Use::trained_further && std::ranges::count(known, own[i]) == 0)) {
            continue;
        }
        return concat("its ", what, " ", i, " is ", own[i], ", but ", whose,
                      i < known.size() ? concat(" calls it ", known[i])
                                       : concat(" has no such ", what));
    }
    return {};
}

/// The numbers that a model gets of a stored u8 are 255 times smaller than those of another type.
bool in_units_of_bytes(FieldInfo const& info) {
    return info.type == h5::Type::u8 && !info.whole;
}

/// Without dimensions of one element, which a channel of masks is.
h5::Shape without_ones(h5::Shape shape) {
    std::erase(shape, 1);
    return shape;
}

std::string rows_text(FieldInfo const& info) {
    return concat(h5::shape_text(info.shape), info.ragged ? " in any number of rows" : "");
}

std::string other_field(FieldInfo const& own, FieldInfo const& known, std::string const& whose,
                        Use use) {
    auto const differs = [&](std::string const& what, auto const& here, auto const& there) {
        return concat("dataset ", own.name, " has ", what, " ", here, ", but ", whose, " has ",
                      there);
    };
    bool const of_text = own.vocabulary > 0 && known.vocabulary > 0;
    bool const is_cut = of_text && !own.ragged; // by the deck, as it likes
    bool const turned =
        own.shape != known.shape && std::ranges::is_permutation(own.shape, known.shape);
    bool const any_shape = is_cut || (use == Use::trained_further && !turned);
    if (own.ragged != known.ragged || (own.shape != known.shape && !any_shape)) {
        return concat(differs("samples of shape", rows_text(own), rows_text(known)),
                      turned ? ": the order of the dimensions differs"
                      : own.ragged == known.ragged &&
                              without_ones(own.shape) == without_ones(known.shape)
                          ? ". Only one of them has a dimension of 1 there; store both alike"
                          : "");
    }
    if (own.whole != known.whole || in_units_of_bytes(own) != in_units_of_bytes(known)) {
        return concat(differs("type", h5::name_of(own.type), h5::name_of(known.type)),
                      in_units_of_bytes(own) != in_units_of_bytes(known)
                          ? " (values of type u8 are divided by 255)"
                          : "");
    }
    if (of_text && own.vocabulary != known.vocabulary) {
        return differs("a vocabulary of", own.vocabulary, known.vocabulary);
    }
    if (of_text && own.end_of_text != known.end_of_text) {
        return differs("the end-of-text token", own.end_of_text, known.end_of_text);
    }
    return {};
}

std::vector<std::string> names_of(std::vector<FieldInfo> const& fields) {
    std::vector<std::string> all;
    std::ranges::transform(fields, std::back_inserter(all), &FieldInfo::name);
    return all;
}

/// Targets of other names, where they are values: a class is known by its own name.
std::string other_targets(Facts const& set, Facts const& known, std::string const& whose) {
    auto const of_values = [](Facts const& facts) {
        return !facts.targets.empty() && facts.targets.front().vocabulary == 0 &&
               (facts.targets.size() > 1 || !facts.targets.front().whole ||
                (facts.targets.front().is_label() && facts.class_count == 0));
    };
    auto const here = names_of(set.targets);
    auto const there = names_of(known.targets);
    return here != there && of_values(set) && of_values(known)
               ? concat("its targets are ", joined(here, ", "), ", but those of ", whose, " are ",
                        joined(there, ", "))
               : std::string();
}

std::string other_fields(std::string const& kind, std::vector<FieldInfo> const& own,
                         std::vector<FieldInfo> const& known, std::string const& whose, Use use) {
    if (own.empty() || known.empty()) {
        return {};
    }
    if (own.size() != known.size()) {
        return concat("a sample has the ", kind, " ", joined(names_of(own), ", "), ", but in ",
                      whose, " ", joined(names_of(known), ", "));
    }
    if (auto here = names_of(own), there = names_of(known);
        here != there && std::ranges::is_permutation(here, there)) {
        return concat("the order of its ", kind, " is ", joined(here, ", "), ", but in ", whose,
                      " it is ", joined(there, ", "));
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (auto found = other_field(own[i], known[i], whose, use); !found.empty()) {
            return found;
        }
    }
    return {};
}

/// The targets without data.mask, which tells what is learnt of a text and not what it means: the
/// tokens after those of the input come first.
std::vector<FieldInfo> targets_without_mask(Facts const& facts) {
    auto targets = facts.targets;
    if (targets.size() == 2 && targets[0].whole && facts.inputs.size() == 1 &&
        targets[0].name == facts.inputs[0].name) {
        targets.pop_back();
    }
    return targets;
}

} // namespace

std::string difference(Facts const& set, Facts const& known, std::string const& whose, Use use) {
    auto const differ = [](auto const& own, auto const& others) {
        return !own.empty() && !others.empty() && own != others;
    };
    auto found = other_fields("inputs", set.inputs, known.inputs, whose, use);
    if (found.empty() && use == Use::as_it_is) {
        found = other_fields("targets", targets_without_mask(set), targets_without_mask(known),
                             whose, use);
        found = found.empty() ? other_targets(set, known, whose) : found;
    }
    if (found.empty()) {
        found = other_name("column", set.columns, known.columns, whose, use);
    }
    if (found.empty()) {
        found = other_name("class", set.classes, known.classes, whose, use);
    }
    if (!found.empty()) {
        return found;
    }
    if (use == Use::as_it_is && known.class_count > 0 && set.class_count > known.class_count) {
        return concat("it has ", set.class_count, " classes, but ", whose, " has ",
                      known.class_count);
    }
    if (set.sample_rate > 0 && known.sample_rate > 0 && set.sample_rate != known.sample_rate) {
        return concat("its sample rate is ", set.sample_rate, " Hz, but that of ", whose, " is ",
                      known.sample_rate, " Hz");
    }
    if (differ(set.tokenizer, known.tokenizer) || differ(set.token_bytes, known.token_bytes)) {
        return concat("its texts were cut into tokens by another tokenizer than those of ", whose);
    }
    return {};
}

std::vector<std::string> renamed(Facts const& set, std::string const& name, Facts const& known,
                                 std::string const& whose) {
    std::vector<std::string> told;
    auto const tell = [&](std::string const& found) {
        if (!found.empty()) {
            told.push_back(concat("the model is trained further on ", name, ": ", found));
        }
    };
    tell(other_targets(set, known, whose));
    for (auto const& [what, own, others] : {std::tuple("column", &set.columns, &known.columns),
                                            std::tuple("class", &set.classes, &known.classes)}) {
        tell(other_name(what, *own, *others, whose, Use::as_it_is));
    }
    return told;
}

std::string other_scale(Facts const& set, std::string const& name, Facts const& known,
                        std::string const& whose) {
    if (set.mean.empty() || (set.mean == known.mean && set.std == known.std)) {
        return {};
    }
    if (known.mean.empty()) {
        return concat(name, " names a mean and std, but ", whose,
                      " was not normalized: its values are used as they are");
    }
    auto const used = concat(name, " is normalized with the mean and std of ", whose);
    constexpr double far = 3;
    for (std::size_t i = 0; i < std::max(set.mean.size(), known.mean.size()); ++i) {
        auto const at = [&](std::vector<double> const& values) {
            return values[values.size() == 1 ? 0 : std::min(i, values.size() - 1)];
        };
        auto const ratio = at(set.std) / at(known.std);
        if (std::abs(at(set.mean) - at(known.mean)) > far * at(known.std) || ratio > far ||
            ratio < 1 / far) {
            auto const which = i < known.columns.size() ? concat("column ", known.columns[i])
                                                        : concat("channel ", i);
            return concat("warning: ", used, ", but its values seem to be in other units: in ",
                          known.mean.size() > 1 || set.mean.size() > 1 ? concat(which, ", ") : "",
                          "its own mean is ", significant(at(set.mean), 6), " and its std ",
                          significant(at(set.std), 6), ", those of ", whose, " are ",
                          significant(at(known.mean), 6), " and ", significant(at(known.std), 6));
        }
    }
    return concat(used, ", not with its own");
}

Facts completed(Facts facts, Facts const& others) {
    auto const take = [](auto& own, auto const& other) {
        if (own.empty()) {
            own = other;
        }
    };
    take(facts.inputs, others.inputs);
    take(facts.targets, others.targets);
    take(facts.classes, others.classes);
    take(facts.columns, others.columns);
    take(facts.target_mean, others.target_mean);
    take(facts.target_std, others.target_std);
    take(facts.token_bytes, others.token_bytes);
    take(facts.tokenizer, others.tokenizer);
    facts.class_count = std::max(facts.class_count, others.class_count);
    facts.sample_rate = facts.sample_rate > 0 ? facts.sample_rate : others.sample_rate;
    return facts;
}

} // namespace lockstep::data
