// SPDX-License-Identifier: Apache-2.0
//
// Databases of system package managers besides dpkg's: pacman's, apk's and rpm's. Read as files;
// nothing is run.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/read/elf.h"
#include "tools/doctor/read/packages.h"

namespace tracefire::doctor {

/// Whether a package is one of those that decide about GPUs.
bool wanted_package(std::string_view name);

/// pacman: the name of a folder of /var/lib/pacman/local, "nvidia-utils-550.54.14-1".
void add_pacman_folder(std::string_view folder, std::map<std::string, SystemPackage>* out);
/// apk: /lib/apk/db/installed.
void add_apk_installed(std::string_view text, std::map<std::string, SystemPackage>* out);
/// Lines of `rpm -qa`: "nvidia-driver-cuda-libs-550.54.15-1.el9.x86_64".
void add_rpm_lines(std::string_view text, std::map<std::string, SystemPackage>* out);

/// rpm's database, SQLite (rpmdb.sqlite) or ndb (Packages.db). At most 20000 packages and about 100
/// MB are read. Returns what was wrong, "" where nothing was.
std::string add_rpm_database(const ReadAt& read_at, std::map<std::string, SystemPackage>* out);

}  // namespace tracefire::doctor
