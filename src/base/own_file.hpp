#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

/// Why a file that this program finds again under a name of its own choice is not to be relied on:
/// it is no regular file, it belongs to neither this user nor root, or others may write to it.
/// Empty: it may be; or there is none.
std::string distrust(std::filesystem::path const& file);

/// Why what lies in a directory that a user has named is of a third person: neither this user, root
/// nor the directory's owner has made it. Empty: one of them has; or there is none.
std::string third_person(std::filesystem::path const& file);
/// The same of a file in the directory `within`, whose name is not the user's either: who may
/// exchange its files can do so whoever made them.
std::string third_person(std::filesystem::path const& file, std::filesystem::path const& within);

/// Throws  Error 73 where a third person has made a link or a directory of this name: it may lead
///         to files of this user that are not meant, or they can exchange what is written there.
///         Also where there is a pipe, a socket or a device, whoever has made it
void require_own_place(std::filesystem::path const& file);

/// For a file that the program has chosen itself in a directory that a user has named.
///
/// Throws  Error 66 where it is of a third person, or the directory `within` is
void require_own_choice(std::filesystem::path const& file);
void require_own_choice(std::filesystem::path const& file, std::filesystem::path const& within);

/// Makes a directory, and those above it, that only this user can look into or make files in.
/// Files of others that lie there already stay.
///
/// Throws  Error 73 where it cannot be made, or there is one of another user, or a link
void make_private_directory(std::filesystem::path const& path);

} // namespace lockstep
