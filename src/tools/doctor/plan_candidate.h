// SPDX-License-Identifier: Apache-2.0
//
// A release that could be installed, and what of this machine speaks against it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/doctor/survey.h"

namespace tracefire::doctor {

/// A release that an index had when the tables were made.
struct KnownRelease {
  std::string version;        ///< "2.20.0"
  std::string least, newest;  ///< Pythons with a wheel: "3.9", "3.13"; newest "" for any
};

/// Why a release does not fit.
struct Obstacle {
  std::string words;     ///< the layer and why, as a part of a sentence
  bool curable = false;  ///< another Python or driver would do
  Finding finding;
};

struct Candidate {
  std::string id, version;
  std::string build;          ///< torch's "cu128", JAX's "cuda12", the back end of Keras, or ""
  std::string least, newest;  ///< as of KnownRelease
  bool python_fits = true;
  bool needs_known = true;      ///< whether the tables know its CUDA and GPUs
  std::string backend_release;  ///< version and build of Keras' back end
  std::string backend_build;
  std::vector<Obstacle> against;
  bool fits() const { return !version.empty() && python_fits && needs_known && against.empty(); }
};

class Planner {
 public:
  Planner(const Root& root, const Data& data, const Survey& survey, Environment env)
      : root_(root), data_(data), survey_(survey), env_(std::move(env)) {}

  /// The newest first.
  std::vector<KnownRelease> releases(const std::string& id) const;
  /// What a release can be had as, the default first: {"cu128", "cu126"}, {""}.
  std::vector<std::string> builds(const std::string& id, const std::string& version) const;
  Candidate consider(const std::string& id, const KnownRelease& release, const std::string& build);
  /// The newest release that meets `conditions` and fits, in `build` where it is not "". Empty
  /// version where none does.
  Candidate newest(const std::string& id, const std::string& conditions, const std::string& build);
  /// Installs it; `pip` is "python3 -m pip".
  std::string command(const Candidate& candidate, const std::string& pip) const;
  const Environment& env() const { return env_; }
  std::string pip() const {
    return env_.prefix.empty() ? env_.interpreter + " -m pip" : env_.pip();
  }

 private:
  const Json* needs(const std::string& id, const std::string& version) const;
  std::vector<Obstacle> obstacles(const std::string& id, const std::string& version,
                                  const std::string& build, const Json& needs);
  void choose_backend(Candidate* keras);

  const Root& root_;
  const Data& data_;
  const Survey& survey_;
  Environment env_;
  std::map<std::string, std::vector<Obstacle>> seen_;  ///< by id, minor and build
};

}  // namespace tracefire::doctor
