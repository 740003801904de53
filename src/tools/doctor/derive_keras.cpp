// SPDX-License-Identifier: Apache-2.0
//
// Keras: the release that TensorFlow asks for, and the framework that Keras computes with.
#include "tools/doctor/derive.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

std::string leading_two(const std::string& version) { return leading(version, 2); }

void tensorflow_facts(const Data& data, const Environment& env, const Framework& fw, Facts* f) {
  const Json* release = data.release("tensorflow", fw.version);
  const Dist* keras = env.dist("keras");
  const Dist* legacy = env.dist("tf-keras");
  bool uses_legacy = f->get("env.legacy_keras") == "yes";
  if (release != nullptr && keras != nullptr && !uses_legacy)
    for (const std::string& condition : texts_of(*release, "keras")) {
      bool tf_new = compare_versions(fw.version, "2.16") >= 0;
      bool keras3 = major_of(keras->version) >= 3;
      if (tf_new != keras3) {
        f->set("fw.keras_wrong", keras->version,
               "TensorFlow " + fw.version + " needs keras" + condition + "; Keras " +
                   keras->version + " is installed in " + env.prefix + ".");
        f->set("fw.keras_needs", condition);
      } else if (!meets(keras->version, condition)) {
        f->set("fw.keras_other", keras->version,
               "TensorFlow " + fw.version + " asks for keras" + condition + "; Keras " +
                   keras->version + " is installed in " + env.prefix + ".");
        f->set("fw.keras_needs", condition);
      }
    }
  if (uses_legacy && legacy == nullptr && compare_versions(fw.version, "2.16") >= 0) {
    f->set("fw.keras_wrong", keras == nullptr ? "3" : keras->version,
           "TF_USE_LEGACY_KERAS is set, so TensorFlow " + fw.version +
               " imports tf_keras, and tf-keras is not installed in " + env.prefix + ".");
    f->set("fw.tf_keras", leading_two(fw.version));
  }
  if (uses_legacy && legacy != nullptr && leading_two(legacy->version) != leading_two(fw.version)) {
    f->set("fw.keras_wrong", legacy->version,
           "TF_USE_LEGACY_KERAS is set and tf-keras is " + legacy->version +
               "; it must be of TensorFlow's release " + leading_two(fw.version) + ".");
    f->set("fw.tf_keras", leading_two(fw.version));
  }
}

/// The file in which Keras keeps its settings, "" where there is none.
std::string settings_file(const Root& root, const Machine& m, const Environment& env) {
  std::vector<std::string> homes;
  if (std::string own = m.variable("KERAS_HOME"); !own.empty()) homes.push_back(own);
  if (std::string home = m.variable("HOME"); !home.empty()) homes.push_back(home + "/.keras");
  if (homes.empty() && env.prefix.rfind("/home/", 0) == 0)
    homes.push_back(env.prefix.substr(0, env.prefix.find('/', 6)) + "/.keras");
  if (homes.empty()) {
    homes.push_back("/root" + std::string("/.keras"));
    std::vector<std::string> users = root.list("/home", 64);
    if (users.size() == 1) homes.push_back("/home/" + users[0] + "/.keras");
  }
  for (const std::string& home : homes)
    if (root.exists(home + "/keras.json")) return home + "/keras.json";
  return "";
}

/// What Keras 3 computes with: KERAS_BACKEND, else keras.json, else TensorFlow.
void backend_facts(const Root& root, const Machine& m, const Environment& env,
                   const std::vector<Framework>& all, const Framework& fw, Facts* f) {
  std::string backend = lower(trim(m.variable("KERAS_BACKEND"))), proof;
  const bool set = !backend.empty();
  if (set) {
    proof = "KERAS_BACKEND is " + backend + ".";
  } else if (std::string file = settings_file(root, m, env); !file.empty()) {
    Json settings = Json::parse(root.read(file, 64 << 10).value_or(""), nullptr, false);
    backend = settings.is_object() ? lower(text_of(settings, "backend")) : "";
    proof = file + " says backend " + backend + ".";
  }
  if (backend.empty()) {
    backend = "tensorflow";
    proof =
        "KERAS_BACKEND is not set and no keras.json names a backend, so Keras takes TensorFlow.";
  }
  if (major_of(fw.version) < 3) {
    backend = "tensorflow";
    proof = "Keras 2 computes with TensorFlow alone.";
  }
  f->set("keras.backend", backend, proof);
  f->set("keras.backend_product", product_of(backend));
  if (backend == "numpy" || backend == "openvino") f->set("keras.on_cpu", backend, proof);
  if (backend != "tensorflow" && backend != "torch" && backend != "jax") return;
  std::string other;
  bool here = false;
  for (const Framework& one : all) {
    here |= one.id == backend;
    if (one.id == "torch" || one.id == "jax" || one.id == "tensorflow" || one.id == "tracefire")
      if (other.empty() || one.build == Build::kGpu) other = one.id;
  }
  if (here) return;
  for (const std::string& site : env.sites)  // a build that pip knows nothing of
    if (other.empty() && root.exists(site + "/tracefire.pth")) other = "tracefire";
  // Where nothing is set for this program, it may choose its back end itself, as Keras's pages do.
  const bool may_choose = !set && major_of(fw.version) >= 3 && !other.empty();
  f->set(may_choose ? "keras.unset" : "keras.missing", backend,
         product_of(backend) + " is not installed in " + env.prefix + ".");
  if (major_of(fw.version) >= 3) f->set("keras.other", other);
  f->set("keras.other_product", product_of(other));
}

}  // namespace

void keras_facts(const Root& root, const Machine& m, const Data& data, const Environment& env,
                 const std::vector<Framework>& all, const Framework& fw, Facts* f) {
  if (fw.id == "tensorflow") tensorflow_facts(data, env, fw, f);
  if (fw.id == "keras") backend_facts(root, m, env, all, fw, f);
}

}  // namespace tracefire::doctor
