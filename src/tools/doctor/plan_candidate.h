// SPDX-License-Identifier: Apache-2.0
//
// A release that could be installed, and what of this machine speaks against it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/doctor/beside.h"
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
  std::vector<std::string> clashes;  ///< why it cannot share the environment with what is there
  /// In an environment of its own.
  bool fits_machine() const {
    return !version.empty() && python_fits && needs_known && against.empty();
  }
  bool fits() const { return fits_machine() && clashes.empty(); }
};

class Planner {
 public:
  Planner(const Root& root, const Data& data, const Survey& survey, Environment env);

  /// The newest first.
  std::vector<KnownRelease> releases(const std::string& id) const;
  /// What a release can be had as, the default first: {"cu128", "cu126"}, {""}.
  std::vector<std::string> builds(const std::string& id, const std::string& version) const;
  Candidate consider(const std::string& id, const KnownRelease& release, const std::string& build);
  /// The newest release that meets `conditions` and fits, in `build` where it is not ""; with
  /// `alone`, in an environment of its own. Empty version where none does.
  Candidate newest(const std::string& id, const std::string& conditions, const std::string& build,
                   bool alone = false);
  /// Installs it; `pip` is "python3 -m pip". With `alone`, in an environment of its own.
  std::string command(const Candidate& candidate, const std::string& pip, bool alone = false) const;
  /// Makes an environment for it and installs it there.
  std::string own_environment(const Candidate& candidate, const std::string& python) const;
  const Environment& env() const { return env_; }
  /// For fill_fix(), which every text with a command goes through.
  static std::string pip() { return "{pip}"; }
  /// The machine's facts and how packages come into the environment.
  Facts facts() const;

 private:
  const Json* needs(const std::string& id, const std::string& version) const;
  /// Whether a release of TensorFlow has the extra [and-cuda].
  bool has_extra(const std::string& version) const;
  std::vector<Obstacle> obstacles(const std::string& id, const std::string& version,
                                  const std::string& build, const Json& needs);
  void choose_backend(Candidate* keras);
  /// Other frameworks of the environment that get their libraries from pip.
  std::vector<CudnnNeed> neighbours_of(const std::string& id) const;
  std::vector<std::string> clashes(const Framework& framework) const;
  /// A framework as it would be after its installation.
  Framework as_framework(const std::string& id, const std::string& version,
                         const std::string& build, const Json& needs) const;

  const Root& root_;
  const Data& data_;
  const Survey& survey_;
  Environment env_;
  std::vector<CudnnNeed> neighbours_;
  std::map<std::string, std::vector<Obstacle>> seen_;  ///< by id, minor and build
};

}  // namespace tracefire::doctor
