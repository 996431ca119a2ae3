#include "import/hdf5_source.hpp"

#include "base/some_of.hpp"
#include "base/text.hpp"
#include "data/checksums.hpp"
#include "data/class_names.hpp"
#include "data/convert.hpp"
#include "data/format.hpp"
#include "data/verify.hpp"
#include "data/weights.hpp"
#include "h5/element_type.hpp"
#include "h5/text_rows.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "facts_behind.hpp"
#include "given_moments.hpp"
#include "input_scale.hpp"
#include "source_field.hpp"
#include "source_file.hpp"

namespace lockstep::import {

namespace {

constexpr std::array types_to_convert_to{h5::Type::u8, h5::Type::i16, h5::Type::i32, h5::Type::f32,
                                         h5::Type::f64};

/// The type that an import was asked for.
h5::Type wanted_type(std::string const& name) {
    auto const type = h5::type_named(name);
    if (!type || std::ranges::find(types_to_convert_to, *type) == types_to_convert_to.end()) {
        throw Error(ExitCode::usage,
                    {concat("--type ", name), "inputs cannot be stored in this type",
                     "Write u8, i16, i32, f32 or f64"});
    }
    return *type;
}

/// The import gives its file checksums, which would be right for damaged samples, too. What else
/// has changed is only told: somebody may have set an attribute.
std::string require_undamaged(h5::File const& file, data::VerifiedPart part) {
    auto const& source = file.path();
    auto const damaged = data::verify(source, part);
    auto const samples = std::ranges::find_if(
        damaged, [&](data::DataDamage const& block) { return file.exists(block.dataset); });
    if (samples != damaged.end()) {
        throw Error(ExitCode::data,
                    {concat(source.string(), " is damaged"),
                     concat(samples->dataset, " has changed in bytes ", samples->first_byte, " to ",
                            samples->last_byte, " since its import"),
                     "Copy the file back from a backup, or import the data again from its source. "
                     "If the change was meant, delete the file's group checksums first"});
    }
    return damaged.empty() ? ""
                           : concat("warning: the names, shapes or attributes of ", source.string(),
                                    " have changed since its import, and are taken as they are");
}

/// A file's samples. The only input and the only target get our names, several keep theirs.
class Hdf5Source : public ImportSource {
  public:
    explicit Hdf5Source(Hdf5Import const& options)
        : options_(options), file_((require_file(options.source), h5::File::open(options.source))) {
        std::optional<h5::Type> type;
        if (!options.type.empty()) {
            type = wanted_type(options.type);
        }
        add_fields(options.inputs, "inputs", type);
        first_target_ = fields_.size();
        add_fields(options.targets, "targets", std::nullopt);
        auto facts = data::read_facts(file_, fields_.front().kept().row, /*of_tokens=*/false);
        if (!options.mean.empty()) {
            std::tie(facts.mean, facts.std) = std::tie(options.mean, options.std);
        }
        behind_ = add_facts_behind(file_, fields_.front(), fields_[first_target_], facts);
        name_classes(fields_[first_target_], facts.classes);
        data::require_names(
            form_.class_names,
            concat(options.classes.empty() ? options.source.string() : "--classes", ": "));
        if (!options.weights.empty()) {
            add(options.weights, options.weights, std::nullopt);
            data::read_weights(file_, options.weights, items()); // refuses what no weight can be
        }
        if (!options.split_by.empty()) {
            groups_ = data::read_targets(file_, options.split_by, fields_.front().samples());
        }
        if (!facts.columns.empty()) {
            form_.texts = {{data::columns_name, facts.columns}};
        }
        if (facts.sample_rate > 0) {
            form_.numbers = {{data::sample_rate_name, {facts.sample_rate}}};
        }
        form_.mean = std::move(facts.mean);
        form_.std = std::move(facts.std);
        if (options.mean.empty()) {
            undivided_ =
                data::undivided_text(fields_.front().stored(), form_.mean, options.source.string());
        }
        fields_.front().rescale(form_.mean);
        fields_.front().rescale(form_.std);
        if (!options.mean.empty()) {
            take_moments(fields_.front().kept());
            undivided_ = data::undivided_text(fields_.front().kept().type, form_.mean, "--mean");
        }
        data::require_scales(options_.source, fields_.front().kept().type, form_.mean, form_.std);
        for (auto const& field : fields_) {
            form_.fields.push_back(field.kept());
        }
        take_origins();
        // Read now: after the import, a fault would look as if there were no data set.
        unscaled_ = form_.mean.empty() ? unscaled_text(file_, fields_.front()) : std::string();
    }

    std::string identity() const override {
        return concat("hdf5 ", joined(options_.inputs, ","), " ", joined(options_.targets, ","),
                      " ", options_.weights, " ", options_.type, " ", options_.split_by, " ",
                      texts_of(options_.mean), texts_of(options_.std), " ",
                      joined(form_.class_names, ","), "\n", stamp(options_.source));
    }
    ImportForm const& form() const override { return form_; }
    std::vector<std::string> remarks() const override {
        auto lines = behind_;
        if (!remark_.empty()) {
            lines.push_back(remark_);
        }
        for (auto const& field : fields_) {
            if (auto const unapplied = data::unapplied_attributes(file_, field.path());
                !unapplied.empty()) {
                lines.push_back(concat("warning: dataset ", field.path(),
                                       " is taken as it is stored, without its ",
                                       joined(unapplied, ", ")));
            }
            auto const storage = file_.storage(field.path());
            if (storage.unwritten) {
                lines.push_back(data::unwritten_text(field.path(), options_.source));
            }
            if (field.stored() == h5::Type::f64 && storage.type != h5::Type::f64) {
                lines.push_back(concat("warning: dataset ", field.path(),
                                       " has floating-point numbers of more than 64 bits, which "
                                       "are rounded to f64"));
            }
        }
        for (auto const* const text : {&unscaled_, &undivided_}) {
            if (!text->empty()) {
                lines.push_back(*text);
            }
        }
        if (auto const names = left_out(); !names.empty()) {
            constexpr std::size_t max_shown = 8;
            lines.push_back(concat("left out ", count_text(std::ssize(names), "dataset"),
                                   " that no option names: ", some_of(names, max_shown)));
        }
        return lines;
    }
    std::int64_t items() const override {
        return static_cast<std::int64_t>(fields_.front().samples());
    }
    std::string name(std::int64_t item) const override {
        return concat(options_.source.string(), " sample ", item);
    }
    std::string origin(std::int64_t item) const override {
        return origins_ ? origins_->at(file_, static_cast<std::uint64_t>(item))
                        : concat("sample ", item);
    }
    std::int64_t label(std::int64_t item) const override {
        return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(item)];
    }
    std::string group(std::int64_t item) const override {
        return groups_.empty() ? ImportSource::group(item)
                               : std::to_string(groups_[static_cast<std::size_t>(item)]);
    }
    std::uint64_t bytes_to_verify() const override {
        return data::has_checksums(options_.source) ? std::filesystem::file_size(options_.source)
                                                    : 0;
    }
    std::string verify(std::uint64_t which, std::uint64_t parts) const override {
        return require_undamaged(file_, {which, parts});
    }
    std::int64_t items_at_once() const override {
        auto min = fields_.front().samples();
        for (auto const& field : fields_) {
            min = std::min(min, field.samples_at_once());
        }
        return static_cast<std::int64_t>(min);
    }

    std::string read(std::int64_t item, std::function<void(Sample&&)> const& sink) const override {
        Sample sample;
        sample.label = label(item);
        for (auto& field : fields_) {
            sample.fields.push_back(field.read(file_, static_cast<std::uint64_t>(item)));
        }
        if (by_position_) {
            require_named(item, sample.fields[first_target_]);
        }
        if (renumbered_) {
            auto const bytes = std::as_bytes(std::span(&sample.label, 1));
            sample.fields[first_target_].assign(bytes.begin(), bytes.end());
        }
        sink(std::move(sample));
        return {};
    }

  private:
    /// A class of a position that has no name is wrong; 255 often stands for none.
    void require_named(std::int64_t item, std::vector<std::byte> const& bytes) const {
        auto const& target = fields_[first_target_].kept();
        std::vector<std::int64_t> values(bytes.size() / h5::size_of(target.type));
        data::to_wholes(target.type, bytes, values);
        auto const names = std::ssize(form_.class_names);
        auto const wrong = std::ranges::find_if(values, [&](std::int64_t value) {
            return value != data::no_class && (value < 0 || value >= names);
        });
        if (wrong != values.end()) {
            throw Error(ExitCode::data,
                        {concat(name(item), ", dataset ", fields_[first_target_].path()),
                         concat("it has the class ", data::whole_text(target.type, *wrong),
                                ", but --classes names ", names, " classes, from 0 to ", names - 1),
                         "Name all classes, or correct the values"});
        }
    }

    void add_fields(std::vector<std::string> const& paths, std::string const& only,
                    std::optional<h5::Type> type) {
        if (paths.empty()) {
            throw Error(ExitCode::usage, {concat("--", only, " is empty"),
                                          "the option needs the name of at least one dataset",
                                          concat("Name a dataset, or leave out --", only)});
        }
        for (auto const& path : paths) {
            add(path, paths.size() == 1 ? only : path, type);
        }
    }

    /// Datasets that are neither imported nor say how the samples are divided.
    std::vector<std::string> left_out() const {
        std::set<std::string> used{options_.split_by};
        if (origins_) {
            used.insert({data::sources_name, concat(data::sources_name, "_offsets")});
        }
        for (auto const& field : fields_) {
            auto const path = field.path().substr(field.path().starts_with('/') ? 1 : 0);
            used.insert({path, path + "_offsets"});
        }
        std::vector<std::string> names;
        for (auto const& name : file_.names()) {
            if (!used.contains(name) && !name.starts_with("checksums/")) {
                names.push_back(name);
            }
        }
        return names;
    }
    static std::string texts_of(std::vector<double> const& values) {
        std::string text;
        for (auto const value : values) {
            text += concat(value, ",");
        }
        return text;
    }

    void take_moments(ImportField const& input) {
        auto const& row = input.row;
        std::vector<std::size_t> counts;
        if (!row.empty()) {
            counts = {static_cast<std::size_t>(row.front()), static_cast<std::size_t>(row.back())};
        }
        require_given_moments(
            options_.mean, options_.std, counts,
            concat("a sample of the inputs has the shape ", h5::shape_text(input.row)));
        if (options_.mean.size() != options_.std.size()) {
            throw Error(ExitCode::usage,
                        {concat("--mean has ", amount_of(options_.mean.size(), "value"),
                                ", but --std has ", options_.std.size()),
                         "each channel has a mean and a standard deviation",
                         "Give as many values of both"});
        }
        form_.mean = options_.mean;
        form_.std = options_.std;
    }

    /// What the samples of one of our files were made from, they still are.
    void take_origins() {
        origins_ = h5::TextRows::in(file_, data::sources_name);
        bool const is_field = std::ranges::any_of(
            fields_, [](SourceField const& field) { return field.path() == data::sources_name; });
        if (is_field || file_.text_attribute("/", "format") != data::format_name ||
            (origins_ && origins_->count() != static_cast<std::uint64_t>(items()))) {
            origins_.reset();
        }
    }

    void add(std::string const& path, std::string const& name, std::optional<h5::Type> type) {
        auto const same = std::ranges::find_if(fields_, [&](auto const& field) {
            return field.kept().name == name || field.path() == path;
        });
        if (same != fields_.end()) {
            bool const twice = same->path() == path;
            throw Error(
                ExitCode::usage,
                {twice ? concat("dataset ", path, " is named twice")
                       : concat("cannot import dataset ", path, " as ", name),
                 twice ? std::string("a data set holds each dataset once")
                       : concat("dataset ", same->path(), " is already imported under that name"),
                 twice ? "Name each dataset once in --inputs, --targets and --weights"
                       : "Rename one of the two datasets in the source file"});
        }
        fields_.emplace_back(file_, path, type, name);
        if (auto const& added = fields_.back(); added.samples() != fields_.front().samples()) {
            throw Error(ExitCode::data, {options_.source.string(),
                                         concat("dataset ", fields_.front().path(), " has ",
                                                amount_of(fields_.front().samples(), "sample"),
                                                ", but dataset ", path, " has ", added.samples()),
                                         "Give each dataset one entry per sample"});
        }
    }

    /// Where the first target is one whole number per sample, it is a class, if it can be.
    void name_classes(SourceField& target, std::vector<std::string> const& theirs) {
        if (!target.is_label()) {
            form_.class_names = names_of_values(target, theirs);
            return;
        }
        auto const stored = target.kept().type;
        labels_ = data::read_targets(file_, target.path(), target.samples());
        bool const named = !options_.classes.empty();
        auto const value = std::ranges::find_if(
            labels_, [](std::int64_t label) { return label < 0 || label >= data::max_classes; });
        if (!named && theirs.empty() && value != labels_.end()) {
            remark_ =
                concat("dataset ", target.path(),
                       " holds whole numbers that cannot be "
                       "classes (",
                       data::whole_text(stored, *value), " in sample ", value - labels_.begin(),
                       "), so they are imported as values, for task.kind = regression");
            labels_.clear();
            return;
        }
        target = SourceField(file_, target.path(), h5::Type::i64, target.kept().name);
        target.make_label();
        if (named) {
            renumber(theirs);
        }
        form_.class_names =
            data::complete_names(named ? options_.classes : theirs, labels_, options_.source,
                                 named ? ExitCode::usage : ExitCode::data, stored);
    }

    /// The names of classes that are not labels of samples: of positions, as in masks; of symbols;
    /// or of the values of a sample, each of which says whether it has the class.
    std::vector<std::string> names_of_values(SourceField const& target,
                                             std::vector<std::string> const& theirs) {
        auto const& names = options_.classes;
        if (names.empty()) {
            return theirs;
        }
        auto const& row = target.kept().row;
        bool const by_value = h5::elements(row) == names.size() && !target.kept().ragged;
        by_position_ = data::is_whole(target.kept().type) && !by_value;
        if (!by_position_ && !by_value) {
            throw Error(ExitCode::usage,
                        {concat("--classes ", some_of(names)),
                         concat("dataset ", target.path(), " has no classes: it holds ",
                                h5::name_of(target.kept().type), " of the shape ",
                                h5::shape_text(row), " for each sample"),
                         "Leave out --classes, or store a class for each sample or position as "
                         "integers, or a value for each of the classes"});
        }
        bool const are_others = std::ranges::none_of(theirs, [&](std::string const& name) {
            return std::ranges::find(names, name) != names.end();
        });
        bool const begin_alike = theirs.size() <= names.size() &&
                                 std::equal(theirs.begin(), theirs.end(), names.begin());
        if (!are_others && !begin_alike) {
            throw Error(ExitCode::usage,
                        {concat("--classes ", some_of(names)),
                         concat(options_.source.string(),
                                " has these classes in another order: ", some_of(theirs)),
                         "List the names in the file's order, and further ones behind them"});
        }
        return names;
    }

    /// Labels that have names keep them: where `--classes` lists these names in another order, or
    /// more of them, the labels become the places in that list. Names of which it has none are
    /// replaced.
    void renumber(std::vector<std::string> const& theirs) {
        auto const& names = options_.classes;
        std::vector<std::int64_t> places;
        std::vector<std::string> missing;
        for (auto const& name : theirs) {
            auto const found = std::ranges::find(names, name);
            places.push_back(found - names.begin());
            if (found == names.end()) {
                missing.push_back(name);
            }
        }
        if (missing.size() == theirs.size()) {
            return;
        }
        if (!missing.empty()) {
            throw Error(ExitCode::usage, {concat("--classes ", some_of(names)),
                                          concat(options_.source.string(),
                                                 " has these classes too: ", some_of(missing)),
                                          "List all classes of the file"});
        }
        for (auto& label : labels_) {
            if (label >= 0 && label < std::ssize(places)) {
                renumbered_ = renumbered_ || places[static_cast<std::size_t>(label)] != label;
                label = places[static_cast<std::size_t>(label)];
            }
        }
    }

    Hdf5Import options_;
    h5::File file_;
    mutable std::vector<SourceField> fields_; ///< they keep blocks for what is read next
    std::size_t first_target_ = 0;
    std::vector<std::int64_t> labels_;
    std::vector<std::string> behind_;  ///< lines on what the file leads to
    std::string remark_;               ///< about the labels; empty: none
    bool renumbered_ = false;          ///< whether these labels are others than the file's
    bool by_position_ = false;         ///< --classes names the classes of positions
    std::vector<std::int64_t> groups_; ///< of each sample; empty: none were asked for
    mutable std::optional<h5::TextRows> origins_; ///< of the samples, as the file has them
    std::string undivided_; ///< a warning, if the mean of u8 is not one of values up to 1
    std::string unscaled_;  ///< a warning, if the inputs are far from mean 0 and deviation 1
    ImportForm form_;
};

} // namespace

std::unique_ptr<ImportSource> hdf5_source(Hdf5Import const& options) {
    return std::make_unique<Hdf5Source>(options);
}

} // namespace lockstep::import
