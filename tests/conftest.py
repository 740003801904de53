# SPDX-License-Identifier: Apache-2.0
"""Writes the labels of the Python tests into pytest's report, where scripts/run_tests reads them."""

LABELS = ("deep", "slow", "threads")


def pytest_collection_modifyitems(items):
    for item in items:
        for label in LABELS:
            if item.get_closest_marker(label):
                item.user_properties.append(("label", label))
