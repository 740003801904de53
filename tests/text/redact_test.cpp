// SPDX-License-Identifier: Apache-2.0
#include "tools/text/redact.h"

#include <doctest/doctest.h>

namespace tracefire::text {

TEST_CASE("text: secrets are left out") {
  CHECK(redacted("python train.py --lr 0.1 --batch=32") == "python train.py --lr 0.1 --batch=32");
  CHECK(redacted("run --api-key abc --x 1") == "run --api-key [redacted] --x 1");
  CHECK(redacted("--hf_token=hf_abcdefghijklmnop") == "--hf_token=[redacted]");
  CHECK(redacted("WANDB_API_KEY=12345 go") == "WANDB_API_KEY=[redacted] go");
  CHECK(redacted("git clone https://me:pw@host/x") == "git clone https://[redacted]@host/x");
  CHECK(redacted("curl -H x ghp_0123456789abcdefghij end") == "curl -H x [redacted] end");
  CHECK(redacted("use hf_abcdefghijklmnop now") == "use [redacted] now");
  CHECK(redacted("0123456789abcdef0123456789abcdef") == "[redacted]");
  CHECK(redacted("Authorization: Bearer aaa.bbb") == "Authorization: [redacted] [redacted]");
  CHECK(redacted("-H 'authorization: bearer aaa' x") ==
        "-H 'authorization: [redacted] [redacted] x");
  CHECK(redacted("sent bearer abc to") == "sent bearer [redacted] to");
  CHECK(redacted("get https://host/x?token=abc&page=2 done") ==
        "get https://host/x?token=[redacted]&page=2 done");
  CHECK(redacted("{\"password\": \"abc\", \"n\": 1}") == "{\"password\": [redacted] \"n\": 1}");
  CHECK(redacted("{\"password\":\"abc\",\"n\":1}") == "{\"password\":\"[redacted]\",\"n\":1}");
  CHECK(redacted("a=1;secret=x;b=2") == "a=1;secret=[redacted];b=2");
}

TEST_CASE("text: what only looks like a secret stays") {
  for (const char* text :
       {"https://host/path@2x.png", "tokenizer=5", "--max-tokens 5", "Author: somebody",
        "signature: and key: required", "module verification failed: signature and/or key missing",
        "TOKENIZERS_PARALLELISM=false", "keys=3", "http://host:8500/v1", "", "=", ":", "-", "--"}) {
    CHECK(redacted(text) == text);
  }
}

TEST_CASE("text: the words of a command") {
  CHECK(redacted_words({"x", "--password", "a b", "-v"}) ==
        std::vector<std::string>{"x", "--password", "[redacted]", "-v"});
  CHECK(redacted_words({"--token=x y", "--token", "--next", ""}) ==
        std::vector<std::string>{"--token=[redacted] y", "--token", "--next", ""});
}

TEST_CASE("text: names of secrets") {
  for (const char* name : {"AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "DB_PASS", "accessToken", "key",
                           "ssh-key", "--api-key", "oauth.token", "HTTP_COOKIE"}) {
    CHECK_MESSAGE(names_a_secret(name), name);
  }
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "TOKENIZERS_PARALLELISM", "max_tokens", "author",
                           "KEYMAP", "keyboard", "", "_", "MONKEY", "bypass"}) {
    CHECK_FALSE_MESSAGE(names_a_secret(name), name);
  }
}

}  // namespace tracefire::text
